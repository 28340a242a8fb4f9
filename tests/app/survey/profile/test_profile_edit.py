"""The job that measures a node, and the lines of a profile that its report changes."""

from pathlib import Path

import pytest

from lumitui.app.job.settings import Settings
from lumitui.app.runs import Runs
from lumitui.app.survey.profile.profile_edit import Edited, edited
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.site.states import State
from lumitui.remote.survey.profile.node_facts import NodeFacts, ProfileChange, compare
from lumitui.remote.survey.profile.node_report import read
from tests.support.jobs.made_runs import a_run
from tests.support.program.command_line import lt
from tests.support.program.home import Home
from tests.support.replies.surveyed import NODE, SURVEY, text_from
from tests.support.servers.transports import FixedAnswer


def change(own: Path, name: str, measured: NodeFacts | None = None) -> Edited:
    site = Sites((own, BUILT_IN)).load(name)
    return edited(measured or compare(read(NODE), site), site, (own, BUILT_IN))


def test_a_measured_profile_keeps_its_comments_and_loses_its_guesses(tmp_path: Path) -> None:
    mine = "# mine, by hand\npoll_seconds: 20  # less often\n"
    (tmp_path / "new.yaml").write_text(text_from(SURVEY) + mine)
    found = change(tmp_path, "new")
    (tmp_path / "new.yaml").write_text(found.after)
    site = Sites((tmp_path,)).load("new")
    assert site.node.gpu_cores == ("13-23", "1-11", "37-47", "25-35")
    assert site.node.gpu_bus == ("17", "31", "b1", "ca")
    assert mine in found.after
    assert "# source: gx11, 20" in found.after
    assert "missing: gpu_cores" not in found.after
    assert "internet_on_compute_nodes" not in site.unverified
    assert "work_root" in site.unverified
    # What the node said is a guess no more, though its value stays; what it did not say is one.
    above = dict(zip(found.after.split("\n")[1:], found.after.split("\n"), strict=False))
    assert above["internet_on_compute_nodes: false"].startswith("# source: gx11, 20")
    assert above["node_folder: /tmp"].startswith("# source: gx11, 20")
    assert above["  gpu_memory_gib: 40"].startswith("  # guess: ")
    assert found.diff.startswith("--- now\n+++ proposed\n")
    # Nothing is left to be said.
    assert change(tmp_path, "new").diff == ""


def test_a_profile_of_the_programs_is_extended_by_one_of_the_persons_own(tmp_path: Path) -> None:
    cores = tuple(f"{core}-{core + 1}" for core in range(1, 17, 2))
    changes = (
        ProfileChange(("node", "reserved_cores"), "0", "CPUSpecList"),
        ProfileChange(("node", "gpu_cores"), cores, "local_cpulist"),
    )
    measured = NodeFacts("nid1", changes, (ProfileChange(("poll_seconds",), "45", "its word"),), ())
    found = change(tmp_path, "lumi", measured)
    assert found.before == ""
    assert found.after.startswith("extends: lumi\n")
    (tmp_path / "lumi.yaml").write_text(found.after)
    site = Sites((tmp_path, BUILT_IN)).load("lumi")
    assert site.node.gpu_cores[0] == "1-2"
    assert "poll_seconds" not in site.unverified
    assert site.partitions["standard-g"].max_nodes == 1024


def test_a_line_that_shared_its_comment_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "new.yaml").write_text(text_from(SURVEY))
    measured = NodeFacts("gx11", (ProfileChange(("node", "cores"), "40", "domains"),), (), ())
    found = change(tmp_path, "new", measured)
    rest = "domains\n  cores: 40\n  # source: sinfo\n  threads_per_core: 2\n"
    assert "  # source: gx11, 20" in found.after and rest in found.after


def test_what_does_not_fit_the_rest_of_the_profile_is_refused(tmp_path: Path) -> None:
    measured = NodeFacts(
        "nid1", (ProfileChange(("node", "gpu_cores"), ("1-2",), "a node"),), (), ()
    )
    with pytest.raises(InputError, match="gpu_cores lists 1 GPUs, but the node has 8"):
        change(tmp_path, "lumi", measured)


LISTS = "node:\n  gpu_cores: [13-23, 1-11, 37-47, 25-35]\n"


def test_a_probe_says_its_price_and_nothing_that_a_person_cannot_change(home: Home) -> None:
    profile = home.config / "sites" / "new.yaml"
    profile.parent.mkdir(parents=True, exist_ok=True)
    profile.write_text(text_from(SURVEY).replace("node:\n", LISTS, 1))
    runs = Runs(home.settings)
    try:
        found = runs.surveys.preview("new")
    finally:
        runs.close()
    assert not [one for one in found.findings if one.at.field == "binding"]
    # Without a terminal the price comes before the refusal.
    asked = lt(home, "site", "check", "new", "--probe")
    assert asked.returncode == 2
    assert "Send a job to new that measures one node of whole" in asked.stderr
    assert asked.stderr.index("billing units") < asked.stderr.index("Cannot ask for confirmation")
    assert "Nothing binds the ranks" not in asked.stderr


@pytest.mark.parametrize(
    ("state", "words", "step"),
    [
        (State.UNKNOWN, "is unknown, so it has no report yet", "--probe --run node-probe-000001`"),
        (State.DONE, "left no report", "`lumitui logs node-probe-000001`, then measure again"),
        (State.FAILED, "is failed without a report", "`lumitui why node-probe-000001` names"),
    ],
)
def test_a_probe_without_a_report_names_the_next_step(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, state: State, words: str, step: str
) -> None:
    monkeypatch.setattr(runs.surveys, "_transport", lambda run: FixedAnswer(b""))
    run = a_run("node-probe-000001", name="node-probe", site="lumi", state=state)
    with pytest.raises(LumiError, match=words) as raised:
        runs.surveys.looked(run)
    assert step in raised.value.hint and "lumitui site check lumi --probe" in raised.value.hint


def test_a_probe_whose_report_was_saved_has_a_tag(
    runs: Runs, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settings.profiles[0] / "new.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_from(SURVEY))
    monkeypatch.setattr(runs.surveys, "_transport", lambda run: FixedAnswer(NODE.encode()))
    run = a_run("node-probe-000001", name="node-probe", site="new", note="first #a")
    runs.history.begin(run)
    looked = runs.surveys.looked(run)
    assert runs.history.get(run.id).note == "first #a"
    runs.surveys.write(looked)
    assert runs.history.get(run.id).note == "first #a #saved"
