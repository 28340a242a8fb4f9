"""Train a network in a loop with Hugging Face accelerate; the lines for lumitui are numbered."""

import argparse

import torch
from accelerate import Accelerator
from torch import nn

import lumitui_run as run  # 1

INPUTS, OUTPUTS = 42, 3


def main() -> None:
    """Train from the beginning or the newest checkpoint."""
    parser = argparse.ArgumentParser(description="Train a linear layer with accelerate.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=32, help="samples per rank")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    torch.manual_seed(0)  # the same weights on every rank
    target = nn.Linear(INPUTS, OUTPUTS).to(accelerator.device)
    layer = nn.Linear(INPUTS, OUTPUTS)
    model, optimizer = accelerator.prepare(layer, torch.optim.SGD(layer.parameters(), args.lr))
    first = 1
    if args.resume and (saved := run.newest()):  # 2
        accelerator.load_state(str(saved))
        first = int(saved.name.split("-")[1]) + 1
    run.start(global_batch=args.batch_size * run.WORLD_SIZE, first_step=first)
    for step in range(first, args.steps + 1):
        torch.manual_seed(step * 65_537 + run.RANK)  # other samples on every rank, each step
        inputs = torch.randn(args.batch_size, INPUTS, device=accelerator.device)
        loss = nn.functional.mse_loss(model(inputs), target(inputs).detach())
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        run.log(step=step, loss=accelerator.reduce(loss.detach(), "mean"))  # 3
        stop = run.stop_requested()  # 4
        if stop or step == args.steps or step % args.save_every == 0:
            with run.saving(f"step-{step:08}") as folder:
                accelerator.save_state(str(folder))
        if stop:
            break
    run.finish()  # 5


if __name__ == "__main__":
    main()
