"""What is read of a Python file: its calls, who reaches them, and what holds a rank."""

import sys
import textwrap

import pytest

from lumitui.app.knowledge.program.deepspeed_config import Offload, read_config
from lumitui.app.knowledge.program.program_facts import PythonFile
from lumitui.app.knowledge.program.python_reader import read_python


def read(text: str) -> PythonFile:
    return read_python(textwrap.dedent(text), "train.py")


def reach(text: str, name: str) -> str:
    program = read(text)
    return program.reach(next(program.named(name.rpartition(".")[2])))


def test_names_are_resolved_through_imports() -> None:
    program = read("""\
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP
        dist.barrier()
        DDP(model, device_ids=[0])
        """)
    assert [call.name for call in program.calls] == [
        "torch.distributed.barrier",
        "torch.nn.parallel.DistributedDataParallel",
    ]


def test_a_fault_has_its_line_and_nothing_else_is_said() -> None:
    program = read("import os\nprint(os.getcwd()\nx = 1\n")
    assert program.fault is not None
    assert program.fault.at.line == 2
    assert program.calls == ()


@pytest.mark.parametrize(
    "text",
    [
        "type Pair = tuple[int, int]",
        "def first[T](x: list[T]) -> T:\n    return x[0]",
        "class Box[T]:\n    pass",
        """print(f"{args["lr"]}")""",
        """print(f"{'\\n'.join(names)}")""",
    ],
)
def test_what_a_newer_python_reads_is_no_fault(text: str) -> None:
    program = read_python(f"{text}\n", "new.py")
    assert program.fault is None
    # The Pythons from 3.12 on read all of it.
    assert not program.whole or program.calls or sys.version_info >= (3, 12)


@pytest.mark.parametrize("text", ["x = '\0'", "(" * 5000 + ")" * 5000, "-" * 100_000 + "1"])
def test_odd_files_are_faults_and_raise_nothing(text: str) -> None:
    assert read_python(text, "odd.py").fault is not None


def test_a_sum_too_long_to_follow_is_no_fault() -> None:
    program = read_python("x = " + " + ".join(["1"] * 900) + "\nprint(x)\n", "long.py")
    assert program.fault is None
    assert not program.whole


def test_roles_go_through_names_sums_and_parameters() -> None:
    program = read("""\
        import os, torch, torch.distributed as dist
        rank = dist.get_rank()
        local_rank = rank % torch.cuda.device_count()
        world = int(os.environ["WORLD_SIZE"])
        def main(mine):
            torch.cuda.set_device(mine)
        main(int(os.environ["SLURM_LOCALID"]))
        f(rank, local_rank, world, f"cuda:{rank}")
        """)
    call = next(program.named("f"))
    found = [one.mentions for one in call.arguments]
    assert found == [{"rank"}, {"local"}, {"world"}, {"rank"}]
    assert next(program.named("set_device")).arguments[0].mentions == {"local"}


@pytest.mark.parametrize(
    "line",
    [
        'rank, local = (int(os.environ[k]) for k in ("RANK", "LOCAL_RANK"))',
        'rank, local = [int(os.environ[k]) for k in ["RANK", "LOCAL_RANK"]]',
        'rank, local = map(int, (os.environ["RANK"], os.environ["LOCAL_RANK"]))',
        'rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])',
    ],
)
def test_roles_go_into_the_parts_of_what_is_unpacked(line: str) -> None:
    program = read(f'import os\n{line}\nf(rank, local, "cuda:%d" % rank, "cuda:%d" % local)\n')
    call = next(program.named("f"))
    assert [one.mentions for one in call.arguments] == [{"rank"}, {"local"}] * 2


def test_a_name_that_is_set_to_two_things_has_no_role() -> None:
    program = read("""\
        import os
        n = int(os.environ["RANK"])
        n = int(os.environ["LOCAL_RANK"])
        f(n)
        """)
    assert next(program.named("f")).arguments[0].mentions == set()


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("import torch\ntorch.save(1, 'x')", "all"),
        ("import torch\nif rank == 0:\n    torch.save(1, 'x')", "one"),
        ("import torch\nif args.save and dist.get_rank() == 0:\n    torch.save(1, 'x')", "one"),
        ("import torch\nif local_rank == 0:\n    torch.save(1, 'x')", "local"),
        ("import torch\nrank == 0 and torch.save(1, 'x')", "one"),
        (
            "import torch\ndef f():\n    if rank != 0:\n        return\n    torch.save(1)\nf()",
            "one",
        ),
        ("import torch\ndef f():\n    torch.save(1)\nif rank == 0:\n    f()", "one"),
        ("import torch\ndef f():\n    torch.save(1)\nif rank == 0:\n    f()\nf()", "all"),
        ("import torch\ndef f():\n    torch.save(1)", "unknown"),
        ("import torch\n@rank_zero_only\ndef f():\n    torch.save(1)\nf()", "one"),
        (
            "r = dist.get_rank()\nmain = r == 0\nif main:\n    torch.save(1, 'x')",
            "one",
        ),
        ("import torch\nif not args.distributed:\n    torch.save(1, 'x')", "unknown"),
        ("import torch\nif args.save_model:\n    torch.save(1, 'x')", "all"),
        ("import torch\nif rank != 0:\n    torch.save(1)", "unknown"),
        ("import torch\nif rank == 0:\n    print()\nelse:\n    torch.save(1)", "unknown"),
        ("import torch\nif rank != 0:\n    print()\nelse:\n    torch.save(1)", "one"),
        ("import torch\nif not rank:\n    torch.save(1)", "one"),
        ("import torch\nif rank:\n    torch.save(1)", "unknown"),
        ("import torch\nif rank >= 4:\n    torch.save(1)", "unknown"),
        ("import torch\nif rank < 1:\n    torch.save(1)", "one"),
        ("import torch\nif rank in (-1, 0):\n    torch.save(1)", "one"),
        ("import torch\nif args.local_rank in [-1, 0]:\n    torch.save(1)", "local"),
        ("import torch\nif args.local_rank != -1:\n    torch.save(1)", "unknown"),
        ("import torch\nif rank == 0 or not distributed:\n    torch.save(1)", "one"),
        ("import torch\nif rank == 0 or last:\n    torch.save(1)", "unknown"),
        ("import torch\nif not (rank != 0 or quiet):\n    torch.save(1)", "one"),
        ("import torch\nif get_tensor_parallel_rank() == 0:\n    torch.save(1)", "unknown"),
        ("import torch\nif args.lora_rank > 0:\n    torch.save(1)", "unknown"),
        ("import torch\nwith acc.main_process_first():\n    torch.save(1)", "unknown"),
        ("import torch\nrank != 0 or torch.save(1)", "one"),
        ("import torch\nx = print() if rank == 0 else torch.save(1)", "unknown"),
        ("other = dist.get_rank() != 0\nif not other:\n    torch.save(1)", "one"),
        ("r = dist.get_rank()\nddp = r != -1\nif ddp:\n    torch.save(1)", "unknown"),
        ("def save():\n    torch.save(1)\nif rank == 0:\n    other.save()", "unknown"),
        ("def f():\n    torch.save(1)\nif rank == 0:\n    f()\nspawn(f)", "unknown"),
    ],
)
def test_who_reaches_a_call(text: str, who: str) -> None:
    assert reach(text, "torch.save") == who


@pytest.mark.parametrize(
    ("condition", "leave", "who"),
    [
        ("rank == 0 and not ready", "raise ValueError(1)", "all"),
        ("rank == 3", "raise ValueError(1)", "all"),
        ("rank >= 4", "raise ValueError(1)", "all"),
        ("rank != 0", "sys.exit('no data')", "all"),
        ("rank == 0 and not ready", "return", "unknown"),
        ("rank > 0 and step % 2", "continue", "unknown"),
        ("rank > 0", "continue", "one"),
        ("rank >= 4", "continue", "unknown"),
        ("rank == 0", "return", "unknown"),
        ("not rank == 0", "return", "one"),
        ("rank != 0", "sys.exit(0)", "one"),
        ("local_rank", "break", "local"),
    ],
)
def test_who_reaches_what_stands_behind_a_branch_that_leaves(
    condition: str, leave: str, who: str
) -> None:
    text = f"""\
        def main():
            for step in range(9):
                if {condition}:
                    {leave}
                torch.save(1)
        main()
        """
    assert reach(textwrap.dedent(text), "torch.save") == who


@pytest.mark.parametrize(
    "text",
    [
        "if args.mpi:\n    rank = os.environ['OMPI_COMM_WORLD_RANK']",
        "try:\n    rank = os.environ['OMPI_COMM_WORLD_RANK']\nexcept KeyError:\n    rank = 0",
        "def f():\n    return os.environ['OMPI_COMM_WORLD_RANK']\nif args.mpi:\n    f()",
        "def f():\n    if args.one:\n        return\n    os.environ['OMPI_COMM_WORLD_RANK']\nf()",
    ],
)
def test_a_variable_behind_a_condition_need_not_be_set(text: str) -> None:
    program = read(f"import os\n{text}\n")
    assert sorted(program.reads) == []
    assert sorted(program.asks) == ["OMPI_COMM_WORLD_RANK"]


def test_variables_that_must_be_set_are_told_from_those_that_may() -> None:
    program = read('import os\na = os.environ["RANK"]\nb = os.environ.get("LOCAL_RANK", 0)\n')
    assert sorted(program.reads) == ["RANK"]
    assert sorted(program.asks) == ["LOCAL_RANK"]


def test_options_have_their_name_and_default() -> None:
    program = read("""\
        parser.add_argument("--num-workers", "-j", type=int, default=10)
        parser.add_argument("--amp", action="store_true")
        """)
    assert [(one.name, one.default and one.default.value) for one in program.options] == [
        ("num_workers", 10),
        ("amp", None),
    ]


def test_a_constant_of_the_module_is_known_where_it_is_used() -> None:
    program = read("WORKERS = 16\nf(WORKERS, -1, other)\n")
    assert [(one.constant, one.value) for one in next(program.named("f")).arguments] == [
        (True, 16),
        (True, -1),
        (False, None),
    ]


def test_functions_that_call_each_other_in_all_ways_end() -> None:
    names = [f"f{number}" for number in range(40)]
    calls = "".join(f"    {name}()\n" for name in names)
    text = "".join(f"def {name}():\n    torch.save(1)\n{calls}" for name in names)
    program = read(f"{text}if rank == 0:\n    f0()\n")
    save = next(program.named("torch.save"))
    assert (program.reach(save), program.always(save)) == ("one", True)


def test_a_long_chain_of_functions_ends() -> None:
    text = "".join(f"def f{number}():\n    f{number + 1}()\n" for number in range(3000))
    program = read(f"{text}def f3000():\n    torch.save(1)\nf0()\n")
    assert program.reach(next(program.named("torch.save"))) in ("all", "unknown")


TEXT = """\
{
  "train_batch_size": 64,
  "gradient_accumulation_steps": "auto",
  "fp16": {"enabled": true, "loss_scale": 128},
  "zero_optimization": {
    "stage": 2,
    "offload_optimizer": {"device": "nvme"}
  },
}
"""


def test_trailing_commas_are_read() -> None:
    config = read_config(TEXT, "ds.json")
    assert config.fault is None
    assert (config.train, config.accumulation) == (64, "auto")
    assert (config.fp16, config.bf16) == (True, None)
    assert config.offload_optimizer == Offload("nvme", None)


def test_a_key_has_its_line() -> None:
    config = read_config(TEXT, "ds.json")
    assert config.at("zero_optimization", "stage").line == 6
    assert config.at("fp16", "enabled").line == 4


def test_what_cannot_be_read_is_a_fault_with_its_line() -> None:
    fault = read_config('{\n  "fp16": {"enabled": true\n', "ds.json").fault
    assert fault is not None
    assert fault.at.line >= 2
