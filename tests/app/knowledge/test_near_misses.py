"""Habits of public scripts that look like a slip and are none."""

import pytest

from lumitui.app.knowledge.rules.known_names import GROUPS, NAMES
from lumitui.app.knowledge.script_check import fixed
from lumitui.app.knowledge.site_facts.expansions import alike, distance
from tests.support.rules.script_findings import findings_in, rules_in

HEAD = "#!/bin/bash\n#SBATCH -A project_465000123 -p small-g -N 1 -n 1 --gpus-per-node=1 -t 1:00\n"
RUN = "srun python train.py\n"
ONE_EACH = (
    "#SBATCH -n 8\nsrun bash -c 'export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID; "
    "torchrun --nnodes=8 --node_rank=$SLURM_PROCID --master_addr=$A train.py'\n"
)
"""A torchrun in each task for one rank, on its own GPU."""


def said(text: str) -> set[str]:
    """Return the rules that say anything about a script."""
    return rules_in(HEAD + text)


@pytest.mark.parametrize(
    ("site", "partition", "gpus", "fix"),
    [
        ("karolina", "qcpu", "", None), ("mahti", "medium", "", None),
        ("lumi", "standrd", "", "--partition=standard"),
        ("karolina", "qgpuu", "--gpus=8", "--partition=qgpu"),
        ("lumi", "standrd-g", "--gpus-per-node=8", "--partition=standard-g"),
    ],
)  # fmt: skip
def test_a_job_without_gpus_is_not_moved_to_nodes_with_gpus(
    site: str, partition: str, gpus: str, fix: str | None
) -> None:
    text = f"#!/bin/bash\n#SBATCH --partition={partition} {gpus}\n./program\n"
    (one,) = [one for one in findings_in(text, site) if one.rule == "partition-unknown"]
    assert (one.severity, one.fix and one.fix.value) == ("error" if fix else "note", fix)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("heredoc-open", f"cat <<EOF >x && echo made\na\nEOF\n{RUN}"),
        ("heredoc-open", f"cat <<A; cat <<B\na\nA\nb\nB\n{RUN}"),
        ("heredoc-open", f"X=$(cat <<EOF\na\nEOF\n)\nY=$(cat <<EOF\na\nEOF)\n{RUN}"),
        ("heredoc-open", f"cat \\\n  <<EOF \\\n  >x\na\nEOF\n{RUN}"),
        ("heredoc-open", f"python - <<'PY'\nx = 1 << 3\nprint('''<<EOF''')\nPY\n{RUN}"),
        ("heredoc-open", f"wc <<< $X\nY=$((1<<4))\n{RUN}"),
        ("heredoc-open", f"sbatch <<EOT\n#!/bin/bash\ncat <<EOF\na\nEOF\nEOT\n{RUN}"),
        ("heredoc-open", f"cat <<-EOF\n\ta\n\tEOF\n{RUN}"),
        ("bracket-without-blank", f'declare -A of=(["a"]="b" \\\n  ["c"]="d")\n{RUN}'),
        ("bracket-without-blank", f'of["a"]=1\nls ["ab"]* [$X]*\n{RUN}'),
        ("bracket-without-blank", f"case $X in\n  [\"a\"]*) b;;\n  *) [ $X ] && c;;\nesac\n{RUN}"),
        ("bracket-without-blank", f"awk '\n[\"$1\"]\nif[ x ]\n' x\n{RUN}"),
        ("bracket-without-blank", f"if [[ $X =~ ^[0-9]+$ ]]; then echo; fi\n{RUN}"),
        ("bracket-without-blank", f"[ $((X%2)) -eq 0 ]&& echo\n[ -n \"$X\" ]||{{ echo; }}\n{RUN}"),
        ("rank-set-in-batch", "#SBATCH -n 8 --gpus-per-task=1\n"
         f"export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID\n{RUN}"),
        ("launcher-nodes", ONE_EACH),
        ("no-srun", "#SBATCH -n 8\nfor i in 0 1 2 3; do python train.py --seed $i & done\nwait\n"),
        ("misspelt-variable", f"export WANDB__SERVICE_WAIT=300 HF_HOME=/x\n{RUN}"),
        ("misspelt-variable", "echo $SLURMD_NODENAME ${SLURM_NTASKS_PER_NODE:-1} $SLURM_JOBID\n"),
        ("misspelt-variable", "export MASTER_ADR=n1\nsrun python train.py --addr $MASTER_ADR\n"),
        ("misspelt-variable", f"export SLURM_ARRAY_TASKID=3\necho $SLURM_ARRAY_TASKID\n{RUN}"),
        ("misspelt-variable", f"FILES=*.h5\nfor FILE in $FILES; do echo $FILE; done\n{RUN}"),
        ("misspelt-variable", f"read -r MODEL_A <x\nMODEL_B=2\necho $MODEL_A $MODEL_B\n{RUN}"),
        ("misspelt-variable", f"STEP_01=a\necho $STEP_02\n{RUN}"),
        ("misspelt-variable", f"FIELDS=3\nawk '{{print $FIELD_}}' x\n{RUN}"),
        ("misspelt-variable", f"export _OMP_NUM_THREADS=7\n{RUN}"),
        ("misspelt-variable", f"# sbatch --export=DATA_DRI=/x\nDATA_DIR=$DATA_DRI\n{RUN}"),
    ],
)  # fmt: skip
def test_a_rule_is_silent_about_a_habit(rule: str, text: str) -> None:
    assert rule not in said(text)


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ("cat >x <<EOF\na\n EOF\n", "cat >x <<EOF\na\nEOF\n"),
        ("if [[$X == 1 ]]; then echo; fi\n", "if [[ $X == 1 ]]; then echo; fi\n"),
        ("while[ $X ]; do echo; done\n", "while [ $X ]; do echo; done\n"),
        ('[ -z "$X"] && echo\n', '[ -z "$X" ] && echo\n'),
    ],
)
def test_the_change_of_a_slip_is_what_was_meant(bad: str, good: str) -> None:
    found = findings_in(HEAD + bad)
    own = [item for item in found if item.rule in ("heredoc-open", "bracket-without-blank")]
    assert fixed(HEAD + bad, own) == (HEAD + good, 1)


def test_what_follows_from_an_open_heredoc_is_not_said() -> None:
    bad = f'cat >x <<EOF\n$(a\nif [ b ]; then\n"c\n{RUN}'
    assert {"heredoc-open"} == said(bad) & {"heredoc-open", "unclosed-quote", "syntax-error"}


def test_letters_are_counted_as_a_person_slips() -> None:
    assert [distance("abcd", other) for other in ("abcd", "abdc", "abc", "abxcd", "xbcx")] == [
        0, 1, 1, 1, 2,
    ]  # fmt: skip
    assert alike("NCCL_SOCKET_IFNMAE", NAMES) == "NCCL_SOCKET_IFNAME"
    assert alike("MODEL_1", {"MODEL_2"}) is None
    assert alike("RANKS", {"RANK"}) is None


def test_a_rank_that_is_alone_in_its_torchrun_selects_gpu_0() -> None:
    files = {"train.py": "import os, torch\ntorch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n"}
    assert "hidden-gpus" not in rules_in(HEAD + ONE_EACH, files=files)
    alone = "torchrun --nnodes=8 --node_rank=$SLURM_PROCID --master_addr=$A"
    assert "hidden-gpus" in rules_in(HEAD + ONE_EACH.replace(alone, "python"), files=files)


def test_each_group_of_names_has_a_source() -> None:
    assert all(" " in source for source in GROUPS)
    assert all(name.isupper() for name in NAMES)


@pytest.mark.parametrize(
    ("before", "rules"),
    [("\ufeff", {"bad-shebang"}), ("\r\n", {"windows-line-ends"}),
     ("\ufeff\r\n", {"bad-shebang", "windows-line-ends"})],
)  # fmt: skip
def test_an_editor_of_windows_brings_one_finding_for_each_thing_it_does(
    before: str, rules: set[str]
) -> None:
    text = f"{HEAD}set -u\nif [ $X ]; then\n  cat <<EOF >x\n$Y\nEOF\nfi\n{RUN}"
    spoilt = text.replace("\n", "\r\n") if "\r" in before else text
    spoilt = spoilt if before == "\r\n" else f"\ufeff{spoilt}"
    found = findings_in(spoilt)
    plain = findings_in(text)
    assert [item for item in found if item.rule not in rules] == plain
    own = [item for item in found if item.rule in rules]
    assert {item.rule for item in own} == rules and len(own) == len(rules)
    once, _ = fixed(spoilt, own)
    again = findings_in(once)
    assert fixed(once, [item for item in again if item.rule in rules])[0] == text
