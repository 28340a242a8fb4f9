"""How long a training waits for a checkpoint that is written in the background, beside one at once.

Runs by itself, in one process: `python -m tests.measure.save_stall [MEGABYTES]`. Both saves go
through the trainers' own Saver, to a disk; the copy, the writing, fsync and the checksums are real.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.places import TRAINERS

PROGRAM = """
import dataclasses, json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from engine import ranks
from saving.checkpoint import Checkpoints
from saving.files import Position
from saving.saver import Saver, Staging

me = ranks.read_ranks({"RUN_DIR": sys.argv[2]})
ranks.join(me)
staging = Staging()
state = {"weights": torch.randn(int(float(sys.argv[3]) * 250_000))}
def stage(folder, copy):
    whole = staging.copied(state) if copy else state
    def write():
        torch.save(whole, folder / "state.pt")
        return ["state.pt"]
    return write
checkpoints = Checkpoints(me.run_dir)
checkpoints.take_over(resumes=True)
savers = [Saver(me, checkpoints, background=background) for background in (False, True)]
at = Position("bench", "none", 0, 1, 1)
blocked = ([], [])
for step in range(1, 17):  # at once, background, background, at once
    kind = (0, 1, 1, 0)[step % 4]
    savers[kind].begin(dataclasses.replace(at, step=step), stage)
    savers[kind].wait()
    blocked[kind].append(savers[kind].ended()[0].blocked)
print(json.dumps(blocked), flush=True)
os._exit(0)
"""


def stall(megabytes: float = 200) -> tuple[float, float]:
    """Median seconds that a training waits for a save: at once, and in the background."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PROGRAM, str(TRAINERS), folder, str(megabytes)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
        left = list(Path(folder).glob("checkpoints/*/manifest.json"))
        assert left, "no checkpoint was made"
    at_once, background = json.loads(done.stdout)
    return statistics.median(at_once), statistics.median(background)


def main() -> None:
    """Print both, and the share."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 200
    at_once, background = stall(megabytes)
    print(
        f"{megabytes:.0f} MB: at once {at_once:.3f} s, in the background {background:.3f} s "
        f"({100 * background / at_once:.1f} % of it; the limit is 10 %)"
    )


if __name__ == "__main__":
    main()
