"""The smallest training with PyTorch DDP that can be stopped, saved and resumed.

One linear layer learns another one, on any number of ranks. It shows what a script of your own may
do for lumitui, and all of it is optional: lines in metrics.jsonl, checkpoints, a stop on request.
"""

import argparse
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANK, LOCAL_RANK = int(os.environ.get("RANK", "0")), int(os.environ.get("LOCAL_RANK", "0"))
RUN_DIR = Path(os.environ.get("RUN_DIR", "."))
STOPPED_EARLY = 85
"""The exit code that says: saved, and not done."""
INPUTS, OUTPUTS = 42, 3


def choose_device() -> torch.device:
    """Return this rank's GPU: the only one that it sees, or that of its local rank."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", LOCAL_RANK % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def save(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    """Write a checkpoint: aside, then renamed, so that half of one never counts."""
    if RANK == 0:
        (RUN_DIR / "checkpoints").mkdir(exist_ok=True)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, RUN_DIR / "checkpoint.new")
        os.replace(RUN_DIR / "checkpoint.new", RUN_DIR / f"checkpoints/step-{step:06}.pt")
    dist.barrier()


def stop_wanted(device: torch.device) -> bool:
    """Return whether to stop, the same on every rank: lumitui makes a file near the time limit."""
    wanted = torch.tensor(float((RUN_DIR / "stop").exists()), device=device)
    dist.all_reduce(wanted, op=dist.ReduceOp.MAX)
    return bool(wanted)


def report(**line: object) -> None:
    """Append a line to metrics.jsonl, which lumitui shows as table and curves."""
    if RANK == 0:
        with (RUN_DIR / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def main() -> int:
    """Train from the beginning or the last checkpoint; return the exit code."""
    parser = argparse.ArgumentParser(description="Train a linear layer with PyTorch DDP.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=32, help="samples of a rank")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    device = choose_device()
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    torch.manual_seed(0)  # the same weights on every rank
    target = nn.Linear(INPUTS, OUTPUTS).to(device)
    model = DistributedDataParallel(nn.Linear(INPUTS, OUTPUTS).to(device))
    optimizer = torch.optim.SGD(model.parameters(), args.lr)
    first = 1
    saved = sorted((RUN_DIR / "checkpoints").glob("step-*.pt"))
    if args.resume and saved:
        state = torch.load(saved[-1], map_location=device, weights_only=True)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"] + 1

    batch, began = args.batch_size * dist.get_world_size(), time.monotonic()
    report(event="start", world_size=dist.get_world_size(), global_batch=batch, first_step=first)
    for step in range(first, args.steps + 1):
        step_began = time.monotonic()
        torch.manual_seed(step * 65_537 + RANK)  # other samples on every rank, each step
        inputs = torch.randn(args.batch_size, INPUTS, device=device)
        loss = nn.functional.mse_loss(model(inputs), target(inputs).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(mean := loss.detach() / dist.get_world_size())
        now = time.monotonic()
        report(step=step, loss=mean.item(), lr=args.lr, seconds=now - began,
               samples_per_s=batch / (now - step_began))  # fmt: skip
        stopping = stop_wanted(device)
        if stopping or step == args.steps or step % args.save_every == 0:
            save(model.module, optimizer, step)
        if stopping and step < args.steps:
            report(event="stop", step=step)
            return STOPPED_EARLY
    report(event="end", step=args.steps)
    if RANK == 0:
        print(f"trained to step {args.steps}", flush=True)
    return 0


if __name__ == "__main__":
    code = main()
    dist.destroy_process_group()
    # On CPUs one of gloo's threads may hold the last tensor: an interpreter that ends then aborts
    # or hangs (PyTorch 2.13). Everything is written; the ranks have met in the last step.
    os._exit(code)
