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
        'V=v,\nsrun --cpu-bind="${{V}}mask_cpu:{}" \\\n\tpython3 t.py\n',
        "M='{}'  # of a node\nBIND=mask_cpu:$M\nsrun --cpu-bind=$BIND python3 t.py\n",
    ],
)
def test_wrong_masks_are_shown_and_replaced_where_they_are_written(lines: str, wrong: str) -> None:
    text = HEAD + lines.format(wrong)
    found = of_masks(text)
    assert found and {one.at.line for one in found} < {4, 5}
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


@pytest.mark.parametrize(
    "lines",
    [
        "srun --gpu-bind=map_gpu:4,5,2,3,6,7,0,1 --cpu-bind=mask_cpu:{} python3 t.py\n",
        "srun --gpu-bind=closest --cpu-bind=mask_cpu:{} python3 t.py\n",
        "export HIP_VISIBLE_DEVICES=4,5,2,3,6,7,0,1\nsrun --cpu-bind=mask_cpu:{} python3 t.py\n",
        "G=(4 5 2 3 6 7 0 1)\nsrun --cpu-bind=mask_cpu:{} bash -c "
        "'export ROCR_VISIBLE_DEVICES=${{G[$SLURM_LOCALID]}}; python3 t.py'\n",
        "cat > gpu.sh <<'EOF'\nG=(4 5 2 3 6 7 0 1)\nexport ROCR_VISIBLE_DEVICES="
        '${{G[SLURM_LOCALID]}}\nexec "$@"\nEOF\n'
        "srun --cpu-bind=mask_cpu:{} bash gpu.sh python3 t.py\n",
    ],
)
def test_masks_fit_the_order_that_the_script_itself_gives_the_gpus(lines: str) -> None:
    assert of_masks(HEAD + lines.format(COUNTED_UP)) == []


@pytest.mark.parametrize(
    "gpus",
    [
        "HIP_VISIBLE_DEVICES=0,1,2,3,4,5,6,7", "CUDA_VISIBLE_DEVICES=$ROCR_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES=${SLURM_LOCALID}",
    ],
)  # fmt: skip
def test_masks_are_wrong_if_the_gpus_are_in_their_own_order(gpus: str) -> None:
    text = f"{HEAD}export {gpus}\nsrun --cpu-bind=mask_cpu:{COUNTED_UP} python3 t.py\n"
    assert [one.rule for one in of_masks(text)] == ["mask-order"]


def test_masks_for_fewer_ranks_than_a_node_has_gpus_are_not_replaced() -> None:
    text = HEAD.replace("=8", "=4") + f"srun --cpu-bind=mask_cpu:{COUNTED_UP} python3 t.py\n"
    assert [(one.rule, one.fix) for one in of_masks(text)] == [
        ("mask-count", None), ("mask-order", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "head", "bind"),
    [
        ("lumi", "-p standard -N 1 --ntasks-per-node=8 -c 16", "0xffff,0xffff0000"),
        ("lumi", "-p small -n 4 -c 4", "0xf,0xf0,0xf00,0xf000"),
        ("mn5", "-q gp_ehpc -N 1 --ntasks-per-node=4 -c 28", f"{2**28 - 1:#x},{15 << 84:#x}"),
    ],
)
def test_nodes_without_gpus_are_not_taken_for_those_of_the_profile(
    name: str, head: str, bind: str
) -> None:
    text = f"#!/bin/bash\n#SBATCH {head}\nsrun --cpu-bind=mask_cpu:{bind} ./program\n"
    rules = {one.rule for one in findings_in(text, name)}
    assert not [one for one in rules if one.startswith("mask-") or one == "cores"]


@pytest.mark.parametrize("line", [4, 5, 6, 7])
def test_a_wrong_mask_is_shown_in_the_line_that_adds_it(line: int) -> None:
    masks = LUMI.split(",")
    at = 2 * (line - 4)
    masks[at : at + 2] = reversed(masks[at : at + 2])
    pairs = [",".join(masks[at : at + 2]) for at in range(0, 8, 2)]
    text = f'{HEAD}B="mask_cpu:{pairs[0]}"\n'
    text += "".join(f'B="${{B}},{pair}"\n' for pair in pairs[1:])
    found = of_masks(text + "srun --cpu-bind=$B python3 t.py\n")
    assert [(one.rule, one.at.line) for one in found] == [("mask-order", line)]


def test_the_place_of_a_wrong_mask_is_that_mask_alone() -> None:
    wrong = RESERVED.split(",").index("0xff00000000000000")
    lines = f'M="{RESERVED}"\nsrun --cpu-bind=verbose,mask_cpu:$M python3 t.py\n'
    (one,) = [one for one in of_masks(HEAD + lines) if one.rule == "mask-reserved"]
    shown = (HEAD + lines).split("\n")[one.at.line - 1][one.at.column - 1 : one.at.end_column - 1]
    assert shown == RESERVED.split(",")[wrong]
