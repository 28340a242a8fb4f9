"""The smallest training with PyTorch DDP that can stop, save and resume.

One linear layer learns another one, on any number of ranks. The numbered lines show what your own
script can do for lumitui: stop in time, save completely, report.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import lumitui_run as run  # 1

INPUTS, OUTPUTS = 42, 3


def choose_device() -> torch.device:
    """Return this rank's GPU: the only one that it sees, or that of its local rank."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def main() -> None:
    """Train from the beginning or the newest checkpoint."""
    parser = argparse.ArgumentParser(description="Train a linear layer with PyTorch DDP.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=32, help="samples per rank")
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
    if args.resume and (saved := run.newest()):  # 2
        state = torch.load(saved / "state.pt", map_location=device, weights_only=True)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"] + 1

    run.start(global_batch=args.batch_size * run.WORLD_SIZE, first_step=first)
    for step in range(first, args.steps + 1):
        torch.manual_seed(step * 65_537 + run.RANK)  # other samples on every rank, each step
        inputs = torch.randn(args.batch_size, INPUTS, device=device)
        loss = nn.functional.mse_loss(model(inputs), target(inputs).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(mean := loss.detach() / run.WORLD_SIZE)
        run.log(step=step, loss=mean, lr=args.lr)  # 3
        stop = run.stop_requested()  # 4
        if stop or step == args.steps or step % args.save_every == 0:
            with run.saving(f"step-{step:08}") as folder:
                if run.RANK == 0:
                    state = {"model": model.module.state_dict(), "step": step}
                    state |= {"optimizer": optimizer.state_dict()}
                    torch.save(state, folder / "state.pt")
        if stop:
            break
    run.finish()  # 5


if __name__ == "__main__":
    main()
