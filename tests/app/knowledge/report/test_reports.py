"""Findings are laid out as linters and GitHub have them."""

from lumitui.app.knowledge.finding_text import (
    CheckedScript,
    findings_summary,
    findings_text,
    github_lines,
)
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import NOWHERE, Position

TEXT = "#!/bin/bash\n#SBATCH --time=15\nsrun python é.py\n"
AT = Position(2, 9, 2, 18)
TIME = Finding("time-limit", "warning", "15 minutes.", "Write hours.", "sbatch(1) --time", AT,
               Fix("write hours", AT, "--time=15:00:00"))  # fmt: skip
WHOLE = Finding(
    "account", "error", "No account:\n50%, none.", "Name one.", "https://x.org/a.", NOWHERE
)
OTHER = Finding("set-device", "note", "Late.", "Move it.", "", Position(1, 1, 1, 7, "é, a.py"))
CHECKED = CheckedScript(
    "jobs/a.sh", "lumi", TEXT, (WHOLE, TIME, OTHER), {"é, a.py": "import x\n"}, "jobs/"
)


def test_a_finding_shows_its_line_with_carets_and_what_to_do() -> None:
    assert findings_text(CHECKED).split("\n\n")[1:] == [
        "jobs/a.sh:2:9: warning time-limit 15 minutes.\n"
        "2 | #SBATCH --time=15\n"
        "  |         ^^^^^^^^^\n"
        "   → Write hours.",
        "jobs/é, a.py:1:1: note set-device Late.\n1 | import x\n  | ^^^^^^\n   → Move it.",
    ]


def test_the_excerpt_of_a_long_line_begins_with_a_word_and_contains_its_place() -> None:
    line = (
        "srun --cpu-bind=mask_cpu=$CPU_BIND_MASKS singularity exec $CONTAINER bash -c " + "x" * 90
    )
    at = Position(1, line.index("xxx") + 1, 1, line.index("xxx") + 11)
    one = Finding("container", "error", "It is.", "Write.", "", at)
    shown = findings_text(CheckedScript("a.sh", "lumi", line, (one,))).split("\n")
    assert shown[1].startswith("1 | --cpu-bind=mask_cpu=$CPU_BIND_MASKS")
    start = shown[2].index("^")
    assert shown[1][start : start + 10] == "x" * 10 and shown[2].count("^") == 10


def test_a_finding_about_the_job_stands_at_its_beginning_without_a_line() -> None:
    assert findings_text(CHECKED).startswith("jobs/a.sh:1:1: error account No account:")


def test_a_text_from_elsewhere_cannot_control_the_terminal() -> None:
    wild = CheckedScript("a\x1b[2J.sh", "lumi", "\x1b]0;x\x07 y\n", (TIME,))
    assert "\x1b" not in findings_text(wild)


def test_the_summary_counts_and_names_what_can_be_fixed() -> None:
    assert findings_summary((CHECKED,)) == (
        "Found 1 error, 1 warning, 1 note in 1 script. --fix changes 1 of them."
    )
    assert findings_summary((CheckedScript("a", "lumi", "", ()),)) == "Nothing found in 1 script."


def test_github_gets_one_line_a_finding_with_its_signs_escaped() -> None:
    whole, time, other = github_lines(CHECKED)
    assert whole == (
        "::error file=jobs/a.sh,line=1,col=1,title=account::No account:%0A50%25, none. Name one."
    )
    assert time == (
        "::warning file=jobs/a.sh,line=2,col=9,endColumn=18,title=time-limit::15 minutes. "
        "Write hours."
    )
    assert other.startswith("::notice file=jobs/é%2C a.py,line=1,")
