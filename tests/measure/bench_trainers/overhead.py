"""What the loop costs a step: the trainers' own beside a bare one, on the same model and images."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import count
from statistics import median

from tests.measure.bench_trainers.row import Row, abba
from tests.support.places import ROOT, TRAINERS

STEPS, ROUNDS, BATCH = 20, 15, 32
MODELS = ("cnn-gn", "vit")
MOST = 1.35
"""Of a bare loop's processor time, for networks whose steps take 10 ms: a GPU's step takes longer,
and the loop as long."""


def rows() -> Iterator[Row]:
    """Yield the milliseconds of a step for each model, in one process each."""
    for model in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", __spec__.name, model],
                env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "RUN_DIR": folder}
                | {"PYTHONPATH": f"{ROOT}:{ROOT}/src"},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        ours, bare = json.loads(done.stdout.splitlines()[-1])
        yield Row(
            f"a step of {BATCH} images, {model}", ours, "CPU ms", bare, "a bare loop", most=MOST
        )


def compare(model: str) -> tuple[float, float]:
    """Return the milliseconds of the trainers' step, and of a bare one; imports the trainers."""
    sys.path.insert(0, str(TRAINERS))
    mnist, shares = import_module("data.mnist"), import_module("data.shares")
    arguments, table = import_module("engine.arguments"), import_module("models.table")
    ranks, reporting = import_module("engine.ranks"), import_module("engine.reporting")
    training, torch = import_module("engine.training"), import_module("torch")

    parser = argparse.ArgumentParser()
    arguments.add_shared(parser)
    arguments.add_torch(parser)
    args = parser.parse_args(["--model", model, "--batch-size", str(BATCH), "--epochs", "1000"])
    me = ranks.read_ranks()
    trained = training.prepare(args, me, import_module("strategies.ddp").Ddp)
    report = reporting.Reporter(me.run_dir, 0, 10**9)
    order = shares.epoch_order(trained.at.train_samples, 0, 0)

    def ours() -> None:
        for _ in range(STEPS):
            if not trained.epoch_has_more():
                trained.at = replace(trained.at, samples=0)
            report.step(trained.step(order)[0])

    net, places = table.build(model, table.DIGITS, 0), count()
    optimizer = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
    digits = mnist.load(args.data, None)

    def bare() -> None:
        for _ in range(STEPS):
            at = next(places) * BATCH % (len(order) - BATCH)
            mine = order[at : at + BATCH]
            images = mnist.to_input(digits.train_images[mine], torch.device("cpu"))
            loss = torch.nn.functional.cross_entropy(net(images), digits.train_labels[mine])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()

    found = abba(ours, bare, ROUNDS)
    return tuple(1000 * median(times) / STEPS for times in found)  # type: ignore[return-value]


if __name__ == "__main__":
    print(json.dumps(compare(sys.argv[1])))
