"""A mistake in masks is shown where they are written, and `--fix` writes the node's own."""

import pytest

from lumitui.app.knowledge.script_check import fixed
from lumitui.remote.site.finding import Finding
from tests.support.rules.lumi_masks import COUNTED_UP, LUMI
from tests.support.rules.script_findings import findings_in

HEAD = (
    "#!/bin/bash\n#SBATCH -A project_465001234 -p standard-g -N 1 -t 1:00:00 --mem=480G\n"
    "#SBATCH --gpus-per-node=8 --ntasks-per-node=8 --cpus-per-task=7\n"
)
RESERVED = LUMI.replace("0xfe00000000000000", "0xff00000000000000")


def of_masks(text: str) -> list[Finding]:
    return [one for one in findings_in(text, "lumi") if one.rule.startswith("mask-")]


@pytest.mark.parametrize("wrong", [RESERVED, COUNTED_UP, COUNTED_UP.replace("fe", "ff")])
@pytest.mark.parametrize(
    "lines",
    [
        'CPU_BIND_MASKS="{}"\nsrun --cpu-bind=v,mask_cpu=$CPU_BIND_MASKS python3 t.py\n',
        "export BIND=mask_cpu:{}\nsrun --cpu-bind=${{BIND}} python3 t.py\n",
        "srun --cpu-bind=mask_cpu:{} python3 t.py\n",
    ],
)
def test_wrong_masks_are_shown_and_replaced_where_they_are_written(lines: str, wrong: str) -> None:
    text = HEAD + lines.format(wrong)
    found = of_masks(text)
    assert found and {one.at.line for one in found} == {4}
    right, count = fixed(text, found)
    assert (right, count) == (text.replace(wrong, LUMI), 1)
    assert of_masks(right) == []


@pytest.mark.parametrize(
    ("before", "wrong"),
    [
        ("export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID\n", COUNTED_UP),
        ("", LUMI.replace("0xfe00000000000000", "0x00fe000000000000")),
        ("", ",".join(LUMI.split(",")[:4])),
    ],
)
def test_masks_are_not_replaced_if_they_may_be_meant_or_are_not_the_nodes_own(
    before: str, wrong: str
) -> None:
    found = of_masks(f"{HEAD}{before}srun --cpu-bind=mask_cpu:{wrong} python3 t.py\n")
    assert found and not any(one.fix for one in found)
