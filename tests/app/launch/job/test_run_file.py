"""lumitui_run.py, which a script has beside it, among ranks that have no torch.distributed."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.places import ROOT

RANKS = 3
PROGRAM = """
import os, pathlib, time
import lumitui_run as run

meetings = 0

def greatest(values):
    global meetings
    meetings += 1
    place = run.RUN_DIR / f"met-{meetings}"
    place.mkdir(exist_ok=True)
    (place / str(run.RANK)).write_text(repr(values))
    while len(list(place.iterdir())) < run.WORLD_SIZE:
        time.sleep(0.01)
    return values

run.stop_requested(greatest)
time.sleep(0.2 * (run.WORLD_SIZE - 1 - run.RANK))  # rank 0 opens the folder last
with run.saving("step-7") as folder:
    time.sleep(0.2 * run.RANK)  # and is the first to have saved
    (folder / f"part-{run.RANK}").write_text("x")
"""


def test_a_save_without_torch_waits_for_every_rank(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "templates" / "examples"),
               "RUN_DIR": str(tmp_path), "WORLD_SIZE": str(RANKS)}  # fmt: skip
    ranks = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env={**environ, "RANK": str(rank)})
        for rank in range(RANKS)
    ]
    assert [rank.wait(60) for rank in ranks] == [0] * RANKS
    parts = sorted(path.name for path in (tmp_path / "checkpoints" / "step-7").iterdir())
    assert parts == ["part-0", "part-1", "part-2"]
