"""A program without srun: an error if it cannot start, and advice that is complete."""

import pytest

from tests.support.rules.script_findings import findings_in

HEAD = "#!/bin/bash\n#SBATCH -A open-00-01 -p qgpu -t 1:00:00 {}\n"
RANKED = (
    "import os\nimport torch\nimport torch.distributed as dist\n"
    "dist.init_process_group('nccl')\ntorch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n"
)
PLAIN = "print('hello')\n"
MASTER = "export MASTER_ADDR=$(hostname) MASTER_PORT=29500\n"
REQUESTS = (
    "-N 1 --gpus-per-node=8 --ntasks-per-node=8 -c 16",
    "-N 2 --gpus-per-node=8 --ntasks-per-node=1 -c 128 --exclusive",
)


def of(text: str, program: str = RANKED) -> dict[str, tuple[str, str]]:
    found = findings_in(text, "karolina", {"train.py": program})
    names = ("no-srun", "missing-rendezvous")
    return {one.rule: (one.severity, one.do) for one in found if one.rule in names}


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_program_that_lacks_its_rank_is_an_error_and_told_all_that_it_needs(
    request_: str,
) -> None:
    head = HEAD.format(request_) + MASTER
    severity, do = of(f"{head}python3 train.py --epochs 10\n")["no-srun"]
    assert severity == "error"
    exports = "RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS"
    call = f"srun bash -c 'export {exports}; exec python"
    assert f"Start it with {call} …'; or start torchrun" in do
    assert of(f"{head}{call}3 train.py'\n") == {}


@pytest.mark.parametrize("program", [PLAIN, "import unknown\n" + RANKED])
def test_it_is_a_warning_if_the_program_may_run(program: str) -> None:
    text = HEAD.format(REQUESTS[0]) + "python3 train.py\n"
    assert of(text, program) == {"no-srun": ("warning", "Write srun before it.")}
    assert of(HEAD.format(REQUESTS[0]) + ". ./env.sh\npython3 train.py\n")["no-srun"][0] == (
        "warning"
    )
