"""All mechanical fixes of a job file are made, and all that a person wrote besides stays."""

from pathlib import Path

from lumitui.app.launch.draft.job_form import apply_fixes
from lumitui.app.launch.send.draft import Draft
from lumitui.app.launch.send.drafts import CheckedDraft, fixed_draft
from lumitui.app.runs import Runs
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key
from tests.support.jobs.small_jobs import hello_project
from tests.support.program.command_line import Here, envelope, told

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
    found = fixed_draft(Draft(BAD, tmp_path, "a test"), runs.drafts.check)
    assert spaces_apart(found.draft.text) == spaces_apart(GOOD)
    assert {item.at.field for item in found.done} >= {"tiem", "launcher", "nodes", "hang"}
    assert not [item for item in found.left if item.fix]


def test_two_fixes_that_undo_each_other_come_to_an_end() -> None:
    def check(draft: Draft) -> CheckedDraft:
        other = "2" if "nodes: 1" in draft.text else "1"
        problem = Finding("", "error", "not so", fix=Fix("another", at_key("nodes"), other))
        return CheckedDraft(draft, (), (problem,), ())

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
