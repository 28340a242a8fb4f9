"""Mechanical changes are put in without overlap, and comments silence a rule where they stand."""

import pytest

from lumitui.app.knowledge.script_check import Checking, edits_diff, fixed, heard
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.site.source_position import NOWHERE, Position

TEXT = "one two\nthree\nfour"
HEAD = """#!/bin/bash
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
"""
MASKS = [f"0x{0xFE << 8 * place:x}" for place in range(8)]
"""The cores of all GPUs of a LUMI-G node, in an order that is not the GPUs'."""


def change(text: str, line: int, column: int, end_line: int, end: int, file: str = "") -> Finding:
    at = Position(line, column, end_line, end, file)
    return Finding("r", "error", "", "", "", at, Fix("", at, text))


def test_edits_are_made_from_the_end_and_do_not_overlap() -> None:
    found = [change("2", 1, 5, 1, 8), change("1", 1, 1, 1, 4), change("x", 1, 2, 1, 6)]
    assert fixed(TEXT, found) == ("1 2\nthree\nfour", 2)


def test_a_line_can_be_removed_and_one_added() -> None:
    assert fixed(TEXT, [change("", 2, 1, 3, 1)]) == ("one two\nfour", 1)
    assert fixed(TEXT, [change("#!\n", 1, 1, 1, 1)]) == ("#!\none two\nthree\nfour", 1)


def test_edits_of_other_files_and_places_outside_change_nothing_here() -> None:
    assert fixed(TEXT, [change("x", 1, 1, 1, 2, file="a.py")]) == (TEXT, 0)
    assert fixed(TEXT, [change("x", 99, 9, 99, 12)]) == (f"{TEXT}x", 1)


def test_the_difference_names_the_script() -> None:
    assert edits_diff("a\nb", "a\nc", "j.sh").splitlines()[0] == "--- j.sh"
    assert edits_diff("a", "a", "j.sh") == ""


def said(rule: str, line: int, end: int = 0) -> Finding:
    at = Position(line, 1, end or line, 9) if line else NOWHERE
    return Finding(rule, "error", "m", "d", "", at)


def rules(found: list[Finding], text: str) -> list[str]:
    return [item.rule for item in heard(found, text)]


def test_a_comment_at_the_end_of_a_line_silences_its_rule_there_alone() -> None:
    text = "a # lumitui: ignore=x\nb\n"
    assert rules([said("x", 1), said("x", 2), said("y", 1)], text) == ["y", "x"]


def test_a_comment_of_its_own_silences_the_command_below_and_the_whole_job() -> None:
    text = "#!\n# lumitui: ignore=x, y\nsrun \\\n  a\nb\n"
    assert rules([said("x", 4), said("y", 0), said("x", 5)], text) == ["x"]
    assert rules([said("x", 3, 4), said("y", 3)], text) == []


@pytest.mark.parametrize("at", ["assignment", "first srun", "second srun", "elsewhere"])
def test_a_comment_about_masks_stands_at_their_assignment_or_where_they_are_used(at: str) -> None:
    comment = "# lumitui: ignore=mask-order\n"
    srun = "srun --ntasks-per-node=8 \\\n  --cpu-bind=mask_cpu:$MASKS python train.py\n"
    places = ("assignment", f"MASKS={','.join(MASKS)}\n"), ("first srun", srun)
    parts = (*places, ("elsewhere", "cd /tmp\n"), ("second srun", srun))
    text = HEAD + "".join(comment * (at == name) + part for name, part in parts)
    site = Sites([BUILT_IN]).load("lumi")
    checking = Checking(
        site, lambda name: None, select=("mask-order", "unused-ignore"), known=tuple
    )
    found = [item.rule for item in checking.check("job.sh", text).findings]
    assert found == (["mask-order", "unused-ignore"] if at == "elsewhere" else [])


def test_a_comment_that_silences_nothing_is_a_note() -> None:
    (item,) = heard([], "a # lumitui: ignore=x\n")
    assert (item.rule, item.severity, item.at.column) == ("unused-ignore", "note", 3)


def test_a_comment_that_names_no_rule_says_which_was_meant() -> None:
    text = "a # lumitui: ignore=fixed-prot\nb # lumitui: ignore=zzz, no-wait\n"
    found = heard([], text, lambda: ("fixed-port", "no-wait"))
    assert {item.do for item in found} == {
        "Write fixed-port.",
        "Remove the comment.",
        "`lumitui rules` lists the names.",
    }


def test_a_comment_that_is_written_otherwise_silences_nothing_and_says_so() -> None:
    for wrong in (
        "# lumitui: ignore",
        "# lumitui ignore=x",
        "# lumitui: ignore x",
        "# lumitui: noqa",
    ):
        (item,) = heard([said("x", 1)][:0], f"a {wrong}\n")
        assert "# lumitui: ignore=RULE" in item.do and item.at.column == 3
    assert heard([], "# lumitui ignores nothing\n# see lumitui: it ignores\n") == []
