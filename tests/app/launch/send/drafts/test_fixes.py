"""What the form offers: fixes of findings, fields of environments, the lines that changed."""

from pathlib import Path

import pytest

from lumitui.app.job.edit import place_of_key, set_key
from lumitui.app.launch.draft import job_form
from lumitui.app.launch.draft.job_form import apply_fix, apply_fixes
from lumitui.app.launch.draft.script_changes import count_changes, script_changes
from lumitui.app.launch.send.draft import Draft
from lumitui.app.launch.send.drafts import fixed_draft
from lumitui.app.runs import Runs
from lumitui.app.survey.environments.known_images import KnownImages, SiteImages
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key
from lumitui.remote.transfer.environments.image_listing import Image, ImageContents
from tests.support.jobs.small_jobs import hello_project
from tests.support.program.command_line import Here, envelope, told
from tests.support.program.home import Home

BAD = """# a trial
name: vit                # short
site: lumi
account: project_462000001
partition: small-g
nodes: 9                 # grows
tiem: "01:00:00"
script: hello.py
launcher: torchrn        # typed in haste
hang: "00:10:00"
gpus_per_node: 4
"""
GOOD = """# a trial
name: vit                # short
site: lumi
account: project_462000001
partition: standard-g
nodes: 9                 # grows
time: "01:00:00"
script: hello.py
launcher: torchrun       # typed in haste
gpus_per_node: 8
"""


def spaces_apart(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_fixes_that_show_more_problems_are_followed_to_the_end(runs: Runs, tmp_path: Path) -> None:
    hello_project(tmp_path)
    found = fixed_draft(Draft(BAD, tmp_path, "a test"), lambda one: runs.drafts.check(one).problems)
    assert spaces_apart(found.draft.text) == spaces_apart(GOOD)
    assert {item.at.field for item in found.done} >= {"tiem", "launcher", "nodes", "hang"}
    assert not [item for item in found.left if item.fix]


def test_two_fixes_that_undo_each_other_come_to_an_end() -> None:
    def check(draft: Draft) -> tuple[Finding, ...]:
        other = "2" if "nodes: 1" in draft.text else "1"
        problem = Finding("", "error", "not so", fix=Fix("another", at_key("nodes"), other))
        return (problem,)

    found = fixed_draft(Draft("nodes: 1\n", Path("."), "a test"), check)
    assert len(found.done) < 10


def test_a_key_is_fixed_once_and_the_worst_comes_first() -> None:
    first = Finding("", "error", "", fix=Fix("", at_key("nodes"), "4"))
    second = Finding("", "warning", "", fix=Fix("", at_key("nodes"), "8"))
    other = Finding("", "note", "", fix=Fix("", at_key("env.X"), None))
    text, done = apply_fixes("nodes: 9\nenv: {X: a, Y: b}\n", (first, second, other))
    assert text == "nodes: 4\nenv: {Y: b}\n"
    assert done == (first, other)


def test_the_verb_shows_the_changes_and_writes_what_was_agreed(here: Here, path: Path) -> None:
    hello_project(path.parent)
    path.write_text(BAD)
    done = here("fix", str(path), "--diff")
    assert done.returncode == 0 and "+partition: standard-g" in done.stdout
    assert "fix: 9 nodes are more than small-g allows for" in done.stderr
    told(here("fix", str(path)), 2, "Write ")
    assert path.read_text() == BAD
    assert envelope(here("fix", str(path), "--diff", "--json"))["data"]["written"] is False
    assert here("fix", str(path), "--yes").returncode == 0
    assert spaces_apart(path.read_text()) == spaces_apart(GOOD)
    done = here("fix", str(path), "--yes")
    assert done.returncode == 0 and "needs no mechanical fix" in done.stderr


JOB = """name: vit
site: lumi
account: project_462000001
partition: standard-g
time: "01:00:00"
script: train.py
"""


def fields(runs: Runs, folder: Path, text: str) -> dict[str, job_form.Field]:
    (folder / "train.py").write_text("print(1)\n")
    return {item.key: item for item in runs.drafts.check(Draft(text, folder, "a test")).fields}


def test_packages_are_typed_as_words(runs: Runs, tmp_path: Path) -> None:
    row = fields(runs, tmp_path, JOB)["venv"]
    assert (row.value, row.shown) == ("", "none")
    text = set_key(JOB, place_of_key("venv"), job_form.read(row, "einops==0.8 'x[y]>1'"))
    row = fields(runs, tmp_path, text)["venv"]
    assert row.value == "einops==0.8 'x[y]>1'"
    assert not row.problems
    # One word that is a file is the requirements file, which is not there.
    text = set_key(JOB, place_of_key("venv"), job_form.read(row, "requirements.txt"))
    (problem,) = fields(runs, tmp_path, text)["venv"].problems
    assert "Cannot read" in problem.words
    # Its other keys are edited in the text.
    assert "venv" not in fields(runs, tmp_path, f"{JOB}venv: {{packages: [a], wheels: /w}}\n")


@pytest.mark.parametrize("known", [False, True])
def test_the_images_of_the_site_are_offered(
    runs: Runs, home: Home, tmp_path: Path, known: bool
) -> None:
    if known:
        said = ImageContents("3.12.1", {"torch": "2.11.0"}, "7.2")
        image = Image("laif", "/appl/new.sif", "/appl/new.sif", 1, 2, {}, said)
        KnownImages(home.data / "images").put("lumi", SiteImages(1.0, (image,)))
    row = fields(runs, tmp_path, JOB)["container.image"]
    offered = {item.value: item.words for item in row.choices}
    own = runs.sites.load("lumi").containers["laif"].image
    assert offered[""] == "the site's own" and offered[own] == "laif"
    assert offered.get("/appl/new.sif") == (
        "torch 2.11.0, ROCm 7.2, Python 3.12.1" if known else None
    )
    # Any other may be typed.
    assert row.kind == "text"
    assert job_form.stepped(row, 1) in offered


def test_a_changed_line_is_gone_and_new_in_its_place() -> None:
    found = script_changes("a\nb\nc\n", "a\nB\nc\nd\n")
    assert [(line.kind, line.text) for line in found] == [
        ("same", "a"), ("gone", "b"), ("new", "B"), ("same", "c"), ("new", "d"), ("same", ""),
    ]  # fmt: skip
    assert count_changes(found) == 2


def test_without_another_script_nothing_is_marked() -> None:
    assert {line.kind for line in script_changes(None, "a\nb")} == {"same"}
    assert count_changes(script_changes("a", "a")) == 0


def test_a_key_is_not_renamed_to_one_that_exists() -> None:
    rename = Fix("rename it to nodes", at_key("nods"), "nodes", renames=True)
    with pytest.raises(InputError, match="already has `nodes:`"):
        apply_fix("nodes: 1\nnods: 2\n", rename)


def test_the_verbs_offer_what_the_form_offers(here: Here, path: Path) -> None:
    hello_project(path.parent)
    (path.parent / "train.py").write_text('print(f"loss {loss:.4f}")\n')
    path.write_text(f"{JOB}args: [--batch-size, '64', --lr, '0.05']\n")
    said = here("preview", str(path)).stderr
    assert "prints loss" in said and "scale both? To do so: lumitui fix " in said
    said = here("fix", str(path), "--yes").stderr
    assert "→ draw loss" in said and "→ scale both" in said
    assert "lumitui fix" not in here("preview", str(path)).stderr
    text = path.read_text()
    assert "metrics:" in text and "batch: {arg: --batch-size, keep: per_gpu}" in text
