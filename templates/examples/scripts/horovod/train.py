"""Train with Horovod and PyTorch on any number of ranks; the training can stop, save and resume.

It is Horovod's usual shape: the optimizer averages the gradients, and rank 0's weights are sent to
the others at the start.
"""

import argparse
import os
import time

import horovod.torch as hvd
import torch
from torch import nn

import lumitui_run as run
from lumitui_run import RANK, RUN_DIR, WORLD_SIZE

LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))
INPUTS, OUTPUTS = 42, 3


def join() -> object:
    """Meet the other ranks: by MPI where Horovod has it, else by Gloo and lumitui's variables.

    Returns:
        What has to live as long as the training.
    """
    server = None
    if WORLD_SIZE > 1 and not hvd.mpi_built():
        server = tell_gloo()
    hvd.init()
    if hvd.size() != WORLD_SIZE:
        raise SystemExit(
            f"Horovod sees {hvd.size()} ranks, but the job has {WORLD_SIZE}. Choose a launcher "
            "that starts ranks of its MPI: `launcher: mpirun`."
        )
    return server


def tell_gloo() -> object:
    """Set the variables that horovodrun would set; rank 0 serves the addresses of all."""
    from horovod.runner.common.util.hosts import SlotInfo
    from horovod.runner.http.http_server import RendezvousServer

    local_size = int(os.environ.get("LOCAL_WORLD_SIZE") or WORLD_SIZE)
    nodes = WORLD_SIZE // local_size
    note = RUN_DIR / f"horovod-{os.environ['MASTER_PORT']}"
    server = None
    if RANK == 0:
        server = RendezvousServer()
        port = server.start()
        server.init(
            [
                SlotInfo(
                    str(rank // local_size),
                    rank,
                    rank % local_size,
                    rank // local_size,
                    WORLD_SIZE,
                    local_size,
                    nodes,
                )
                for rank in range(WORLD_SIZE)
            ]
        )
        note.with_suffix(".new").write_text(str(port))
        os.replace(note.with_suffix(".new"), note)
    ends = time.monotonic() + 120
    while not note.exists():
        if time.monotonic() > ends:
            raise SystemExit(f"Rank {RANK} has waited two minutes for {note} from rank 0.")
        time.sleep(0.1)
    os.environ |= {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": os.environ["MASTER_ADDR"],
        "HOROVOD_GLOO_RENDEZVOUS_PORT": note.read_text(),
        "HOROVOD_HOSTNAME": str(RANK // local_size),
        "HOROVOD_RANK": str(RANK),
        "HOROVOD_SIZE": str(WORLD_SIZE),
        "HOROVOD_LOCAL_RANK": str(LOCAL_RANK),
        "HOROVOD_LOCAL_SIZE": str(local_size),
        "HOROVOD_CROSS_RANK": str(RANK // local_size),
        "HOROVOD_CROSS_SIZE": str(nodes),
    }
    return server


def choose_device() -> torch.device:
    """Return this rank's GPU: the only one that it sees, or that of its local rank."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", LOCAL_RANK % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def greatest(values: list[float]) -> list[float]:
    """Return the greatest of all ranks, of each number."""
    return hvd.allreduce(torch.tensor(values), op=hvd.Max, name="greatest").tolist()


def main() -> None:
    """Train from the beginning or the newest checkpoint."""
    parser = argparse.ArgumentParser(description="Train a linear layer with Horovod.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=32, help="samples per rank")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    _server = join()
    device = choose_device()
    torch.manual_seed(0)  # the same weights on every rank
    target, model = (nn.Linear(INPUTS, OUTPUTS).to(device) for _ in range(2))
    plain = torch.optim.SGD(model.parameters(), args.lr)
    optimizer = hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters())
    first = 1
    if args.resume and (saved := run.newest()):
        state = torch.load(saved / "state.pt", map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"] + 1
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

    run.start(global_batch=args.batch_size * WORLD_SIZE, first_step=first)
    for step in range(first, args.steps + 1):
        torch.manual_seed(step * 65_537 + RANK)  # other samples on every rank, each step
        inputs = torch.randn(args.batch_size, INPUTS, device=device)
        loss = nn.functional.mse_loss(model(inputs), target(inputs).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = hvd.allreduce(loss.detach(), name="loss")  # the average over the ranks
        run.log(step=step, loss=mean, lr=args.lr)
        stop = run.stop_requested(greatest)
        if stop or step == args.steps or step % args.save_every == 0:
            with run.saving(f"step-{step:06}") as folder:
                if RANK == 0:
                    state = {"model": model.state_dict(), "step": step}
                    state |= {"optimizer": optimizer.state_dict()}
                    torch.save(state, folder / "state.pt")
        if stop:
            break
    if RANK == 0:
        print(f"trained on {hvd.size()} ranks")
    hvd.shutdown()
    run.finish()


if __name__ == "__main__":
    main()
