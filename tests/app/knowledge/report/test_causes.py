"""What is left out of findings, and where those about written files are shown."""

import pytest

from lumitui.remote.site.finding import Finding
from tests.support.rules.script_findings import findings_in

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
