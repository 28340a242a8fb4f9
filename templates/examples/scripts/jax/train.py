"""Train with JAX on any number of ranks; the training can stop, save and resume.

Each rank has one device. A small network learns a function of its input; every step is one jitted
computation over all ranks, in which JAX averages the gradients.
"""

import argparse
import os
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

import lumitui_run as run
from lumitui_run import RANK, WORLD_SIZE

INPUTS, HIDDEN = 42, 64
Weights = dict[str, jax.Array]


def join() -> None:
    """Meet the other ranks, by the variables that every launcher of lumitui sets."""
    if WORLD_SIZE == 1:
        return
    # The next port: torchrun's own rendezvous may have MASTER_PORT.
    address = f"{os.environ['MASTER_ADDR']}:{int(os.environ['MASTER_PORT']) + 1}"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or os.environ.get("ROCR_VISIBLE_DEVICES")
    # If a launcher shows each rank only its own GPU, that is number 0.
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
def train_step(weights: Weights, inputs: jax.Array, lr: float) -> tuple[Weights, jax.Array]:
    """Return changed weights, and the loss."""
    loss, gradient = jax.value_and_grad(loss_of)(weights, inputs)
    changed = jax.tree.map(lambda weight, slope: weight - lr * slope, weights, gradient)
    return changed, loss


def samples(step: int, count: int) -> np.ndarray:
    """Return this rank's part of a step's samples, which are the same for any number of ranks."""
    whole = np.random.default_rng(step).normal(size=(count, INPUTS)).astype(np.float32)
    return whole[RANK * count // WORLD_SIZE : (RANK + 1) * count // WORLD_SIZE]


def greatest(values: list[float]) -> list[float]:
    """Return the greatest of all ranks, of each number."""
    of_all = np.atleast_2d(process_allgather(np.array(values, np.float32)))
    return [float(value) for value in of_all.max(axis=0)]


def main() -> None:
    """Train from the beginning or the newest checkpoint."""
    parser = argparse.ArgumentParser(description="Train a small network with JAX.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=64, help="samples per rank")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    join()
    mesh = Mesh(np.array(jax.devices()), ("ranks",))
    everywhere, divided = NamedSharding(mesh, Spec()), NamedSharding(mesh, Spec("ranks"))
    weights = jax.jit(new_weights, out_shardings=everywhere)(jax.random.key(0))
    first = 1
    if args.resume and (checkpoint := run.newest()):
        with np.load(checkpoint / "weights.npz") as saved:
            weights = {
                name: jax.make_array_from_process_local_data(everywhere, saved[name])
                for name in saved
            }
        first = int(checkpoint.name.removeprefix("step-")) + 1

    batch = args.batch_size * WORLD_SIZE
    run.start(global_batch=batch, first_step=first)
    for step in range(first, args.steps + 1):
        inputs = jax.make_array_from_process_local_data(divided, samples(step, batch))
        weights, loss = train_step(weights, inputs, args.lr)
        run.log(step=step, loss=float(loss), lr=args.lr)  # waits for the device
        stop = run.stop_requested(greatest)
        if stop or step == args.steps or step % args.save_every == 0:
            with run.saving(f"step-{step:06}") as folder:
                if RANK == 0:
                    np.savez(folder / "weights.npz", **jax.tree.map(np.asarray, weights))
        if stop:
            break
    if RANK == 0:
        print(f"trained on {len(jax.devices())} devices")
    run.finish()


if __name__ == "__main__":
    main()
