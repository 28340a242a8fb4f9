"""A training with JAX on any number of ranks, which can be stopped, saved and resumed.

Each rank has one device. A small network learns a function of its input; every step is one jitted
computation over all ranks, in which JAX averages the gradients.
"""

import argparse
import json
import os
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

RANK, WORLD_SIZE = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
RUN_DIR = Path(os.environ.get("RUN_DIR", "."))
STOPPED_EARLY = 85
"""The exit code that says: saved, and not done."""
INPUTS, HIDDEN = 42, 64
Weights = dict[str, jax.Array]


def join() -> None:
    """Meet the other ranks, by the variables that every launcher of lumitui sets."""
    if WORLD_SIZE == 1:
        return
    # The next port: torchrun's own rendezvous may have MASTER_PORT.
    address = f"{os.environ['MASTER_ADDR']}:{int(os.environ['MASTER_PORT']) + 1}"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or os.environ.get("ROCR_VISIBLE_DEVICES")
    # Where a launcher shows each rank its own GPU only, that is number 0.
    own = 0 if visible and "," not in visible else int(os.environ.get("LOCAL_RANK", "0"))
    jax.distributed.initialize(address, WORLD_SIZE, RANK, local_device_ids=[own])


def new_weights(key: jax.Array) -> Weights:
    """Return the first weights."""
    one, two = jax.random.split(key)
    return {
        "first": jax.random.normal(one, (INPUTS, HIDDEN)) / INPUTS**0.5,
        "second": jax.random.normal(two, (HIDDEN,)) / HIDDEN**0.5,
    }


def loss_of(weights: Weights, inputs: jax.Array) -> jax.Array:
    """Return the mean squared error of a batch."""
    outputs = jnp.tanh(inputs @ weights["first"]) @ weights["second"]
    return jnp.mean((outputs - jnp.sin(inputs.sum(axis=1) / INPUTS**0.5)) ** 2)


@partial(jax.jit, donate_argnums=0)
def train_step(
    weights: Weights, inputs: jax.Array, stop: jax.Array, lr: float
) -> tuple[Weights, jax.Array, jax.Array]:
    """Return changed weights, the loss, and whether any rank was asked to stop."""
    loss, gradient = jax.value_and_grad(loss_of)(weights, inputs)
    changed = jax.tree.map(lambda weight, slope: weight - lr * slope, weights, gradient)
    return changed, loss, stop.max()


def samples(step: int, count: int) -> np.ndarray:
    """Return this rank's part of a step's samples, which are the same for any number of ranks."""
    whole = np.random.default_rng(step).normal(size=(count, INPUTS)).astype(np.float32)
    return whole[RANK * count // WORLD_SIZE : (RANK + 1) * count // WORLD_SIZE]


def save(weights: Weights, step: int) -> None:
    """Write a checkpoint: aside, then renamed, so that half of one never counts."""
    if RANK == 0:
        (RUN_DIR / "checkpoints").mkdir(exist_ok=True)
        with (RUN_DIR / "checkpoint.new").open("wb") as file:
            np.savez(file, **{name: np.asarray(value) for name, value in weights.items()})
        os.replace(RUN_DIR / "checkpoint.new", RUN_DIR / f"checkpoints/step-{step:06}.npz")


def report(**line: object) -> None:
    """Append a line to metrics.jsonl, which lumitui shows as table and curves."""
    if RANK == 0:
        with (RUN_DIR / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def main() -> int:
    """Train from the beginning or the last checkpoint; return the exit code."""
    parser = argparse.ArgumentParser(description="Train a small network with JAX.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=64, help="samples of a rank")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    join()
    mesh = Mesh(np.array(jax.devices()), ("ranks",))
    everywhere, divided = NamedSharding(mesh, Spec()), NamedSharding(mesh, Spec("ranks"))
    weights = jax.jit(new_weights, out_shardings=everywhere)(jax.random.key(0))
    first = 1
    found = sorted((RUN_DIR / "checkpoints").glob("step-*.npz"))
    if args.resume and found:
        with np.load(found[-1]) as saved:
            weights = {
                name: jax.make_array_from_process_local_data(everywhere, saved[name])
                for name in saved
            }
        first = int(found[-1].stem.removeprefix("step-")) + 1

    batch, began = args.batch_size * WORLD_SIZE, time.monotonic()
    report(event="start", world_size=WORLD_SIZE, global_batch=batch, first_step=first)
    for step in range(first, args.steps + 1):
        step_began = time.monotonic()
        asked = np.array([(RUN_DIR / "stop").exists()], dtype=np.int32)
        inputs = jax.make_array_from_process_local_data(divided, samples(step, batch))
        stop = jax.make_array_from_process_local_data(divided, asked)
        weights, loss, stopping = train_step(weights, inputs, stop, args.lr)
        now_loss, stopping = float(loss), bool(stopping)  # waits for the device
        now = time.monotonic()
        report(step=step, loss=now_loss, lr=args.lr, seconds=now - began,
               samples_per_s=batch / (now - step_began))  # fmt: skip
        if stopping or step == args.steps or step % args.save_every == 0:
            save(weights, step)
        if stopping and step < args.steps:
            report(event="stop", step=step)
            return STOPPED_EARLY
    report(event="end", step=args.steps)
    if RANK == 0:
        print(f"trained to step {args.steps} on {len(jax.devices())} devices")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
