"""Programs about which no rule speaks, and odd ones, which no rule trips over."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as some

from lumitui.app.knowledge.rule import RULE_FAILED
from tests.support.rules.script_findings import rules_in

RANKS = "#!/bin/bash\n#SBATCH -p standard-g -N 1 --ntasks-per-node=8 --gpus-per-node=8\n"
SIGNAL = f"{RANKS}#SBATCH --signal=B:USR1@300\ntrap 'touch stop' USR1\n"


def said(program: str, script: str = f"{RANKS}srun --cpu-bind=cores python train.py\n") -> set[str]:
    """Return the rules that say anything about a script and its program."""
    return rules_in(script, files={"train.py": program})


@pytest.mark.parametrize(
    "line",
    [
        'rank, world = (int(os.environ[n]) for n in ("RANK", "WORLD_SIZE"))',
        'rank, world = map(os.environ.get, ["SLURM_PROCID", "SLURM_NTASKS"])',
        'rank, world = map(lambda n: int(os.getenv(n)), ("RANK", "WORLD_SIZE"))',
        'for n in ("RANK", "WORLD_SIZE"):\n    found[n] = int(os.environ.get(n, 0))',
        'NAMES = ["RANK"]\nfound = {n: os.environ[n] for n in NAMES}',
        'def number(name):\n    return int(os.environ[name])\nrank = number("RANK")',
        'from os import environ as env\nrank = int(env["RANK"])',
        'rank = 0 if "RANK" not in os.environ else 1',
    ],
)
def test_a_rank_that_is_read_by_its_name_as_a_value_is_asked_for(line: str) -> None:
    assert "ranks-unused" not in said(f"import os\n{line}\ntrain(rank)\n")


@pytest.mark.parametrize(
    "line",
    [
        'home, user = (os.environ[n] for n in ("HOME", "USER"))',
        'os.environ["RANK"] = "0"',
        'os.environ.setdefault("RANK", "0")',
        'for n in ("HOME", "USER"):\n    print(os.environ[n])\nos.environ["RANK"] = "0"',
        'print("RANK")',
    ],
)
def test_a_program_that_asks_for_no_rank_is_still_named(line: str) -> None:
    assert "ranks-unused" in said(f"import os\n{line}\ntrain()\n")


@pytest.mark.parametrize(
    ("launch", "late"),
    [
        ("bash -c 'exec \"$@\"' rank python train.py &\nwait $!\n", False),
        ("bash -c 'exec \"$@\"' rank python train.py\n", True),
        ("bash -c 'srun python train.py' &\nwait $!\n", False),
        ("bash -c 'srun python train.py'\n", True),
        ("(bash -c 'srun python train.py') &\nwait $!\n", False),
    ],
)
def test_a_shell_in_the_background_has_its_programs_there(launch: str, late: bool) -> None:
    assert ("trap-behind-launch" in said("train()\n", SIGNAL + launch)) == late


BARRIER = """import os, sys
import torch, torch.distributed as dist
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
rank = dist.get_rank()
def main(folder):
{body}
main("data")
dist.destroy_process_group()
"""
TORCHRUN = RANKS.replace("tasks-per-node=8", "tasks-per-node=1") + (
    "srun torchrun --nproc_per_node=8 train.py\n"
)


@pytest.mark.parametrize(
    ("body", "hangs"),
    [
        ("if rank == 0:\n    dist.barrier()", True),
        ("if rank != 0:\n    return\ndist.barrier()", True),
        ("if not rank == 0:\n    print(1)\nelse:\n    dist.barrier()", True),
        (
            "if rank == 0 and not os.path.isdir(folder):\n    raise OSError(1)\ndist.barrier()",
            False,
        ),
        ("if rank == 3 and not folder:\n    raise ValueError(1)\ndist.barrier()", False),
        ("if rank >= 4:\n    raise ValueError(1)\ndist.barrier()", False),
        ("for x in y:\n    if rank > 0 and x:\n        continue\n    dist.all_reduce(x)", False),
        ("if rank != 0:\n    dist.barrier()\nload()\nif rank == 0:\n    dist.barrier()", False),
        ("if rank == 0:\n    dist.barrier(pair)", False),
        ("if rank == 0:\n    dist.all_reduce(x, dist.ReduceOp.SUM, pair)", False),
        ("if rank == 0:\n    other.main(folder)\ndist.barrier()", False),
    ],
)
def test_a_collective_is_named_where_the_text_shows_that_others_do_not_come(
    body: str, hangs: bool
) -> None:
    text = BARRIER.format(body="\n".join(f"    {line}" for line in body.split("\n")))
    assert ("collective-on-one-rank" in said(text, TORCHRUN)) == hangs


SEVERAL_WAYS = """import argparse, os
import torch, torch.distributed as dist
parser = argparse.ArgumentParser()
parser.add_argument("--world-size", type=int, default=1)
parser.add_argument("--mpi", action="store_true")
args = parser.parse_args()
if args.mpi:
    rank, args.world_size = int(os.environ["OMPI_COMM_WORLD_RANK"]), 4
else:
    rank, args.world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", rank=rank, world_size=args.world_size)
args.world_size = dist.get_world_size()
dist.destroy_process_group()
"""


def test_a_program_that_can_be_started_in_several_ways_has_no_fault() -> None:
    assert "rank-variable-missing" not in said(SEVERAL_WAYS, TORCHRUN)


CASES = Path(__file__).parents[1] / "cases"
SCRIPT = """\
#!/bin/bash
#SBATCH --partition=small-g
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --time=24:00:00
#SBATCH --signal=USR1@60
srun python train.py --deepspeed_config ds.json --num_workers 9 --bf16 --model gpt2-7b
"""
TEXTS = [
    text
    for path in sorted([*CASES.glob("program/*.yaml"), *CASES.glob("training/*.yaml")])
    for case in yaml.load(path.read_text(), yaml.CSafeLoader)
    for key in ("files", "bad_files", "good_files")
    for file, text in case.get(key, {}).items()
    if file.endswith(".py")
]
LINES = [line for text in TEXTS for line in text.splitlines()]
VALUES = some.one_of(
    some.sampled_from(["auto", "nvme", "cpu", "/tmp", "", None, True, 0, -1, 1, 3, 1.5, 10**30]),
    some.lists(some.integers(), max_size=2),
)
KEYS = some.sampled_from(
    ["train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "stage",
     "enabled", "loss_scale", "device", "nvme_path", "type"]
)  # fmt: skip
PARTS = some.sampled_from(
    ["zero_optimization", "fp16", "bf16", "optimizer", "offload_optimizer", "offload_param"]
)
CONFIGS = some.recursive(
    some.dictionaries(KEYS, VALUES, max_size=6),
    lambda inner: some.dictionaries(PARTS | KEYS, inner | VALUES, max_size=5),
    max_leaves=12,
)


def check(text: str, config: str) -> None:
    rules = rules_in(SCRIPT, files={"train.py": text, "ds.json": config})
    assert RULE_FAILED not in rules


@settings(max_examples=40, deadline=None)
@given(some.lists(some.sampled_from(LINES), max_size=25), CONFIGS)
def test_any_lines_of_programs_and_any_configuration(lines: list[str], config: object) -> None:
    check("\n".join(lines), json.dumps(config))


@settings(max_examples=100, deadline=None)
@given(some.sampled_from(TEXTS), CONFIGS)
@example(TEXTS[0], {"gradient_accumulation_steps": 0, "train_batch_size": 8})
def test_whole_programs_and_any_configuration(text: str, config: object) -> None:
    check(text, json.dumps(config))


@settings(max_examples=40, deadline=None)
@given(some.text(max_size=80), some.text(max_size=80))
def test_any_text(text: str, config: str) -> None:
    check(text, config)


@settings(max_examples=40, deadline=None)
@given(some.lists(some.sampled_from([line.strip() for line in LINES]), max_size=25))
def test_lines_without_their_indentation(lines: list[str]) -> None:
    blocks = [f"{line}\n    pass" if line.endswith(":") else line for line in lines]
    check("\n".join(blocks), '{"train_batch_size": 32}')


WRAPS = "import os\nimport torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
INIT = 'torch.distributed.init_process_group("nccl")\n'
MODEL = "model = DDP(torch.nn.Linear(8, 8).to(device))\n"
CHOICE = 'device = "cuda" if torch.cuda.is_available() else "cpu"\n'
CUDA = "cuda = torch.cuda.is_available()\n"


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        ("no-own-gpu", f"{CHOICE}{MODEL}"),
        ("no-own-gpu", f"rank = int(os.environ['RANK'])\n{INIT[:-2]}, rank=rank)\n{CHOICE}{MODEL}"),
        ("no-own-gpu", f"{CUDA}device = 'cuda' if cuda else 'cpu'\n{MODEL}"),
        (
            "no-own-gpu",
            "def main():\n    device = 'cuda'\n    torch.nn.Linear(8, 8).to(device)\nmain()",
        ),
        ("one-gpu-for-all", f"{CUDA}if cuda:\n    torch.cuda.set_device(0)\n{CHOICE}{MODEL}"),
        ("one-gpu-for-all", "if torch.cuda.is_available():\n    torch.cuda.set_device(0)\n"),
    ],
)
def test_ranks_that_all_compute_on_gpu_0_are_named(rule: str, lines: str) -> None:
    assert rule in said(f"{WRAPS}{INIT}{lines}")


@pytest.mark.parametrize(
    "lines",
    [
        f"{CHOICE}local = int(os.environ['LOCAL_RANK'])\ntorch.cuda.set_device(local)\n{MODEL}",
        f"{CHOICE}if 'LOCAL_RANK' in os.environ:\n"
        f"    device = 'cuda:' + os.environ['LOCAL_RANK']\n{MODEL}",
        f"{CHOICE}os.environ['CUDA_VISIBLE_DEVICES'] = os.environ['LOCAL_RANK']\n{MODEL}",
        "def other():\n    device = 'cuda'\n\ndef main(device):\n"
        "    torch.nn.Linear(8, 8).to(device)\nmain(chosen())\n",
        f"one = 'RANK' not in os.environ\nif one:\n    torch.cuda.set_device(0)\n{MODEL}",
        f"device = 'cpu'\n{MODEL}",
    ],
)
def test_a_rank_that_may_select_its_own_gpu_is_not_named(lines: str) -> None:
    assert not {"no-own-gpu", "one-gpu-for-all"} & said(f"{WRAPS}{INIT}{lines}")
