"""The report about a script: its findings, its edits, what is silenced, and without a site."""

import pytest

from lumitui.app.knowledge.any_site import any_site, is_known
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.finding_text import (
    CheckedScript,
    findings_summary,
    findings_text,
    github_lines,
)
from lumitui.app.knowledge.rule import RULE_FAILED
from lumitui.app.knowledge.rule_table import findings
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.site.source_position import NOWHERE, Position
from tests.support.rules.rule_cases import read_cases
from tests.support.rules.script_findings import findings_in

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
    assert shown[1].startswith("1 | … --cpu-bind=mask_cpu=$CPU_BIND_MASKS")
    assert shown[1].endswith("xxx…"), "it goes on"
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
        "::error file=jobs/a.sh,line=1,col=1,title=account (lumi)::No account:%0A50%25, none. "
        "Name one."
    )
    assert time == (
        "::warning file=jobs/a.sh,line=2,col=9,endColumn=18,title=time-limit (lumi)::15 minutes. "
        "Write hours."
    )
    assert other.startswith("::notice file=jobs/é%2C a.py,line=1,")


_CASES = read_cases()
_SITES = Sites([BUILT_IN])


def test_a_site_that_nobody_named_is_not_known() -> None:
    assert not is_known(any_site())
    assert is_known(_SITES.load("lumi"))


def test_what_is_said_of_good_scripts_without_a_site_is_said_with_it() -> None:
    more = []
    for case in _CASES:
        files = {**case.files, **case.good_files}
        known = _SITES.load(case.good_site or case.site)
        found = findings(read_script(case.good, site=any_site(), files=files), any_site())
        if found:
            there = findings(read_script(case.good, site=known, files=files), known)
            held = {(each.rule, each.at) for each in there}
            more += [(case.rule, each) for each in found if (each.rule, each.at) not in held]
    assert more == []


def test_no_rule_fails_without_a_site_and_most_speak() -> None:
    spoke, failed = set(), []
    for case in _CASES:
        files = {**case.files, **case.bad_files}
        found = findings(read_script(case.bad, site=any_site(), files=files), any_site())
        failed += [each.message for each in found if each.rule == RULE_FAILED]
        spoke |= {case.rule} & {each.rule for each in found}
    assert failed == []
    assert len(spoke) > len({case.rule for case in _CASES if "sites/" not in case.module}) // 2


_HEAD = "#!/bin/bash\n#SBATCH -A project_2001234 -p gpumedium -N 2 --ntasks-per-node=1 -c 128\n"
_GPUS = "#SBATCH --gres=gpu:a100:4 -t 1:00:00\n"


def found(body: str) -> list[Finding]:
    return [each for each in findings_in(_HEAD + body, "mahti") if each.severity != "note"]


def test_a_finding_about_a_written_file_stands_in_the_script() -> None:
    config = '{"train_batch_size": 64,\n "train_micro_batch_size_per_gpu": %s}'
    body = (
        _GPUS + "cat > ds.json <<'EOF'\n%s\nEOF\n"
        "srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_endpoint=$H:$P train.py "
        "--deepspeed_config ds.json\n"
    )
    own = [each for each in found(body % (config % 16)) if each.rule == "deepspeed-batch"]
    assert [(each.at.file, each.at.line) for each in own] == [("", 5)]
    assert not [each for each in found(body % (config % 8)) if each.rule == "deepspeed-batch"]


@pytest.mark.parametrize(("line", "kept"), [("#SBATCH --gres=gpu:a100:4", False),
                                            ("#SBATCH --comment=x", True)])  # fmt: skip
def test_missing_gpus_are_not_said_where_a_line_asks_too_late(line: str, kept: bool) -> None:
    rules = {each.rule for each in found(f"ulimit -s unlimited\n{line}\nsrun python train.py\n")}
    assert "directive-after-command" in rules
    assert ("gpus-missing" in rules) == kept


def test_a_folder_of_one_node_is_not_said_beside_what_is_unpacked_there() -> None:
    body = _GPUS + "mkdir -p /tmp/data\n{unpack}\nsrun python train.py --data /tmp/data\n"
    both = found(body.replace("{unpack}", "tar xf data.tar -C /tmp/data"))
    alone = found(body.replace("{unpack}", ""))
    severities = [[each.severity for each in some if each.rule == "first-node-only"]
                  for some in (both, alone)]  # fmt: skip
    assert severities == [["error"], ["warning"]]


def test_a_rank_that_one_variable_hands_to_another_is_said_once() -> None:
    body = _GPUS + (
        'export LAUNCH="torchrun --nnodes=2 --nproc_per_node=4 --node_rank $SLURM_NODEID"\n'
        'export CMD="$LAUNCH --master_addr $H --master_port $P train.py"\nsrun $CMD\n'
    )
    own = [each for each in found(body) if each.rule == "rank-expanded-in-batch"]
    assert [each.at.line for each in own] == [4]
