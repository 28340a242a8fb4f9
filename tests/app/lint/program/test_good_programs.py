"""What good programs do in an unusual way, and what only looks like it."""

import pytest

from lumitui.app.lint.bash import read_script
from lumitui.app.lint.table import findings
from lumitui.remote.site.sites import BUILT_IN, Sites

LUMI = Sites([BUILT_IN]).load("lumi")
RANKS = "#!/bin/bash\n#SBATCH -p standard-g -N 1 --ntasks-per-node=8 --gpus-per-node=8\n"
SIGNAL = f"{RANKS}#SBATCH --signal=B:USR1@300\ntrap 'touch stop' USR1\n"


def said(program: str, script: str = f"{RANKS}srun --cpu-bind=cores python train.py\n") -> set[str]:
    """Return the rules that say anything about a script and its program."""
    job = read_script(script, site=LUMI, files={"train.py": program})
    return {one.rule for one in findings(job, LUMI)}


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


LOADER = """from torch.utils.data import DataLoader, Dataset, IterableDataset
class Base(IterableDataset): pass
class Stream(Base): pass
class Packed(Dataset): pass
train = {made}
loader = DataLoader(train, num_workers=4)
for epoch in range(9):
    train.epoch = epoch
    for x in loader:
        step(x)
"""


@pytest.mark.parametrize(
    ("made", "noted"),
    [("Packed()", True), ("Stream(0, 8)", False), ("Base()", False), ("chosen()", False)],
)
def test_workers_of_a_stream_are_not_kept(made: str, noted: bool) -> None:
    assert ("workers-restart" in said(LOADER.replace("{made}", made))) == noted


def test_workers_of_a_streamed_data_set_are_not_kept() -> None:
    text = LOADER.replace("{made}", "load_dataset('x', streaming=True)")
    text = f"from datasets import load_dataset\n{text}".replace("(IterableDataset)", "")
    assert "workers-restart" not in said(text)
    assert "workers-restart" in said(text.replace("True", "False"))


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
