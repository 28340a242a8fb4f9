"""Runs beside each other: job file, script, metrics, and the files of their code."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.follow.results.comparison import changes
from lumitui.app.job.settings import Settings
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from tests.support.jobs.made_runs import a_run
from tests.support.program.command_line import Here, envelope

FILES = st.dictionaries(st.text(max_size=4), st.sampled_from(["1", "2"]), max_size=6)


@given(FILES, FILES)
def test_the_changes_lead_from_one_list_of_files_to_the_other(
    old: dict[str, str], new: dict[str, str]
) -> None:
    found = {item.path: item.what for item in changes(old, new)}
    assert {path for path, what in found.items() if what == "added"} == set(new) - set(old)
    assert {path for path, what in found.items() if what == "removed"} == set(old) - set(new)
    same = {path for path in old if old[path] == new.get(path)}
    assert set(found) == {*old, *new} - same


def test_only_what_differs_is_told_of_three_runs(settings: Settings) -> None:
    runs = Runs(settings)
    for number, nodes in enumerate((1, 2, 2)):
        run = a_run(f"r{number}", created=float(number), state=State.DONE)
        spec = run.spec.model_copy(update={"nodes": nodes})
        runs.history.begin(replace(run, spec=spec, script=f"#SBATCH --nodes={nodes}\nsrun x\n"))
        steps = [{"step": step, "loss": 1.0, "samples_per_s": 57800.0} for step in (1, 2, 3)]
        if number:
            runs.history.metrics.add(run.id, [json.dumps(one).encode() for one in steps], (0, 9))
    found = runs.comparisons.of(["r0", "r1", "r2"])
    assert [(item.what, item.values) for item in found.fields] == [("nodes", ("1", "2", "2"))]
    assert found.code == ()
    assert dict((item.what, item.values) for item in found.metrics)["samples/s"] == (
        "-", "57,800", "57,800",
    )  # fmt: skip
    assert [len(one.values) for one in found.losses] == [0, 3, 3]
    assert [line for line in found.scripts[0] if line[1:].startswith("#SBATCH")] == [
        "-#SBATCH --nodes=1", "+#SBATCH --nodes=2",
    ]  # fmt: skip
    (one, two) = runs.comparisons.code(["r0", "r1", "r2"])
    assert one.unknown == two.unknown == "The code of r0 is unknown: none was sent."
    for wrong in (["r0"], ["r0"] * 5):
        with pytest.raises(InputError, match="cannot be compared"):
            runs.comparisons.of(wrong)
    runs.close()


def test_the_files_of_two_snapshots_are_compared_after_the_code_changed(
    here: Here, job: Path, settings: Settings
) -> None:
    one, two, three = (sent(here, job, change) for change in ("", "# more", "# most"))
    found = envelope(here("diff", one, two, "--json"))["data"]
    assert found["files"] == [
        {"path": "hello.py", "what": "changed"},
        {"path": "new# more.py", "what": "added"},
    ]
    assert "changed  hello.py" in here("diff", one, two).stdout
    runs = Runs(settings)
    assert runs.comparisons.code([one, one])[0].files == ()
    # The history has the last list; those of the site are asked for, and may be gone.
    root = Path(runs.history.get(one).root)
    for sums in (root / "code").glob("*.sums"):
        sums.chmod(0o600)
        sums.write_text("no checksums")
    (change,) = runs.comparisons.code([three, one])
    assert change.unknown == f"The code of {one} is unknown: its list of files is not on the site."
    runs.close()


def sent(here: Here, job: Path, change: str) -> str:
    """Send the project with `change` in it; return the run's id."""
    script = job.parent / "hello.py"
    script.write_text(script.read_text() + change)
    if change:
        (job.parent / f"new{change}.py").write_text("")
    done = here("submit", str(job), "--yes")
    assert done.returncode == 0, done.stderr
    return str(done.stdout.strip())
