"""What the loop costs a step: the trainers' own beside a bare one, on the same model and images.

Ours is ddp.py as a person starts it, with its checks, its reports and its data; the bare loop is
the least that trains. Each runs in a process of its own, in turns.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.measure.bench_trainers.row import Row
from tests.support.places import TRAINERS
from tests.support.trainers.ranks import train_alone

FIRST, LAST, BATCH, ROUNDS = 20, 120, 32, 2
MODELS = {"cnn-gn": 1.35, "vit": 1.25}
"""Each with the most of a bare loop's processor time: steps of 20 ms on one core; those of a GPU
take longer, and what the loop does not."""
OURS = f"""
import time
from engine import training
real, calls = training.Training.step, []
def step(self, *words):
    calls.append(time.process_time())
    if len(calls) == {LAST}:
        print("took", calls[{LAST - 1}] - calls[{FIRST - 1}], flush=True)
    return real(self, *words)
training.Training.step = step
"""
BARE = f"""
import sys, time, torch
from data import mnist
from models.table import DIGITS, build
torch.set_num_threads(1)
digits, net = mnist.open_set(mnist.SAMPLE).train, build(sys.argv[1], DIGITS, 0)
optimizer = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
order = torch.randperm(len(digits.targets))
for number in range(1, {LAST + 1}):
    if number in ({FIRST}, {LAST}):
        took = time.process_time() - (0 if number == {FIRST} else began)
        began = time.process_time()
    mine = order[torch.arange(number * {BATCH}, (number + 1) * {BATCH}) % len(order)]
    images = (digits.inputs[mine].float() / 255 - mnist.MEAN) / mnist.DEVIATION
    loss = torch.nn.functional.cross_entropy(net(images), digits.targets[mine])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
print("took", took, flush=True)
"""


def rows() -> Iterator[Row]:
    """Yield the milliseconds of a step for each model."""
    for model, most in MODELS.items():
        took: dict[str, list[float]] = {"ours": [], "bare": []}
        for number in range(2 * ROUNDS):
            for which in ("ours", "bare") if number % 2 == 0 else ("bare", "ours"):
                took[which].append(_milliseconds(which, model))
        ours, bare = median(took["ours"]), median(took["bare"])
        name = f"a step of {BATCH} images, {model}"
        yield Row(name, ours, "CPU ms", bare, "a bare loop", most=most)


def _milliseconds(which: str, model: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        if which == "ours":
            steps = ["--steps", str(LAST), "--batch-size", str(BATCH), "--epochs", "1000"]
            words = ["ddp.py", "--model", model, *steps, "--eval", "never", "--save-every", "999"]
            code, said = train_alone(Path(folder), *words, before=OURS)
        else:
            program = Path(folder) / "bare.py"
            path = f"import sys; sys.path.insert(0, {json.dumps(str(TRAINERS))})\n"
            program.write_text(path + BARE)
            code, said = train_alone(Path(folder), str(program), model)
        if code:
            raise SystemExit(said)
        (line,) = (line for line in said.splitlines() if line.startswith("took"))
        return 1000 * float(line.split()[1]) / (LAST - FIRST)
