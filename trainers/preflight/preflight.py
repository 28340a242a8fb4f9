"""Measure GPU, GEMM and all-reduce on every rank before a training run begins.

    srun python preflight.py --seconds 25 --gpus 8 --bus c1,c6,c9,ce,d1,d6,d9,de

Every launcher of the trainers can start it. It needs only PyTorch and preflight_verdict.py beside
it. Rank 0 writes `preflight.json` into RUN_DIR, which names wrong and slow ranks and nodes. It ends
in time whatever hangs, because rank 0 reads the ranks' reports from its key-value store without a
collective. The exit code is 0; the verdict is in the file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import threading
import time
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from preflight_verdict import UNITS, Report, Result, Wanted, conclude

RESULT = "preflight.json"
QUOTED = "\"'\\`$"


# -- the ranks' reports


class Board:
    """Each rank's reports, in a store served by rank 0's process or torchrun's agent."""

    def __init__(self, rank: int, world: int, seconds: float, *, serves: bool = True) -> None:
        """Connect; rank 0 serves the store if no launcher does."""
        import torch.distributed as dist

        self.rank, self.world, self.seconds = rank, world, seconds
        self.store: Any
        if world == 1:
            self.store = dist.HashStore()  # type: ignore[attr-defined]  # documented, not re-exported
            return
        served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        self.store = dist.TCPStore(  # type: ignore[attr-defined]
            os.environ["MASTER_ADDR"],
            int(os.environ["MASTER_PORT"]),
            is_master=serves and rank == 0 and not served,
            timeout=timedelta(seconds=seconds),
            wait_for_workers=False,
        )

    def again(self) -> Board:
        """Return a second connection, because a waiting call blocks the first."""
        return self if self.world == 1 else Board(self.rank, self.world, self.seconds, serves=False)

    def tell(self, report: Report) -> None:
        """Report this rank's measurements."""
        report.told = time.time()
        self.store.set(f"lumitui/{self.rank}", json.dumps(asdict(report)))
        # `get` waits for a missing key; adding 0 shows whether it exists.
        self.store.add(f"lumitui/told/{self.rank}", 1)

    def reports(self) -> list[Report | None]:
        """Return each rank's last report."""
        return [self._report(rank) for rank in range(self.world)]

    def _report(self, rank: int) -> Report | None:
        if not self.store.add(f"lumitui/told/{rank}", 0):
            return None
        told = json.loads(self.store.get(f"lumitui/{rank}"))
        return Report(**told | {"cores": tuple(told["cores"]), "near": tuple(told["near"])})

    def gate(self, name: str, *, fit: bool, until: float) -> bool:
        """Wait for all ranks until a deadline; return whether all arrived and are usable."""
        key = f"lumitui/gate/{name}"
        self.store.add(f"{key}/fit", int(fit))
        self.store.add(f"{key}/come", 1)
        if self.rank == 0:
            while self.store.add(f"{key}/come", 0) < self.world and time.monotonic() < until:
                time.sleep(0.02)
            go = self.store.add(f"{key}/fit", 0) == self.world
            self.store.set(f"{key}/go", "1" if go else "0")
        return bool(self.store.get(f"{key}/go") == b"1")


# -- measurements


def _cpu_list(text: str) -> tuple[int, ...]:
    cores: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first:
            cores += range(int(first), int(last or first) + 1)
    return tuple(cores)


def choose_device(report: Report, local_rank: int, gpus: int) -> Any:
    """Return this rank's device and report its properties; raises errors of the driver."""
    import torch

    if not gpus:
        torch.set_num_threads(1)
        return torch.device("cpu")
    report.devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not report.devices or (report.devices > 1 and local_rank >= report.devices):
        raise RuntimeError(f"PyTorch finds {report.devices} GPUs, planned {gpus}")
    device = torch.device("cuda", local_rank if report.devices > 1 else 0)
    torch.cuda.set_device(device)
    facts: Any = torch.cuda.get_device_properties(device)
    if hasattr(facts, "pci_bus_id"):  # newer than PyTorch 2.2
        report.address = (
            f"{facts.pci_domain_id:04x}:{facts.pci_bus_id:02x}:{facts.pci_device_id:02x}.0"
        )
        with contextlib.suppress(OSError, ValueError):
            place = Path("/sys/bus/pci/devices", report.address, "local_cpulist")
            report.near = _cpu_list(place.read_text())
    return device


def measure_gemm(device: Any, seconds: float = 0.5) -> float:
    """Return the TFLOP/s of large matrix products: bf16 on a GPU, fp32 on the CPU."""
    import torch

    on_gpu = device.type == "cuda"
    size, kind = (8192, torch.bfloat16) if on_gpu else (512, torch.float32)
    left, right = (torch.randn(size, size, dtype=kind, device=device) for _ in range(2))
    batch = 10 if on_gpu else 1
    for _ in range(batch):
        left @ right
    _wait(device)
    began, products = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        for _ in range(batch):
            left @ right
        products += batch
        _wait(device)
    return float(2 * size**3 * products / (time.perf_counter() - began) / 1e12)


def join(board: Board, device: Any) -> None:
    """Create the process group of all ranks; never destroyed, because that may hang with gloo."""
    import torch.distributed as dist

    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        store=dist.PrefixStore("group", board.store),  # type: ignore[attr-defined]
        rank=board.rank,
        world_size=board.world,
        # Above the time of all: the watchdog ends this process before PyTorch does, with an error.
        timeout=timedelta(seconds=300),
    )


def measure_all_reduce(ranks: range, device: Any) -> float:
    """Return the bus bandwidth in GB/s of an all-reduce among these ranks; 0 for a single one."""
    import torch
    import torch.distributed as dist

    if len(ranks) == 1:
        return 0.0
    on_gpu = device.type == "cuda"
    everybody = len(ranks) == dist.get_world_size()
    # Only its members create a node's group: there may be a thousand nodes.
    group = None if everybody else dist.new_group(list(ranks), use_local_synchronization=True)
    data = torch.ones(1 << (27 if on_gpu else 18), device=device, dtype=torch.bfloat16)
    times = 10 if on_gpu else 4
    began = 0.0
    for turn in range(-2, times):
        if turn == 0:
            _wait(device)
            began = time.perf_counter()
        dist.all_reduce(data, group=group)
    _wait(device)
    each = (time.perf_counter() - began) / times
    # As in nccl-tests: 2(n-1)/n of the bytes cross each rank's link.
    return float(2 * (len(ranks) - 1) / len(ranks) * data.nbytes / each / 1e9)


def _wait(device: Any) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize()


def measure(board: Board, report: Report, wanted: Wanted, local_rank: int, until: float) -> None:
    """Measure this rank and report after each part. Never raises an error."""
    board.tell(report)
    try:
        _measure(board, report, wanted, local_rank, until)
    except (RuntimeError, OSError, AssertionError, ValueError) as error:
        report.error = _plain(str(error))[:200] or type(error).__name__
    report.done = True
    board.tell(report)
    board.store.add("lumitui/done", 1)


def _measure(board: Board, report: Report, wanted: Wanted, local_rank: int, until: float) -> None:
    rank, world, per_node = board.rank, board.world, wanted.per_node
    # All at the same time, so that ranks that share cores or power are compared under equal load.
    board.gate("begin", fit=True, until=until - 0.4 * board.seconds)
    fit = False
    try:
        device = choose_device(report, local_rank, wanted.gpus)
        report.gemm = measure_gemm(device)
        fit = True
    finally:
        board.tell(report)
        # A failed rank arrives too: the others must not wait for it in a collective.
        late = min(time.monotonic() + 5, until - 0.15 * board.seconds)
        together = world > 1 and board.gate("all-reduce", fit=fit, until=late)
    if together:
        join(board, device)
        first = rank - rank % per_node
        report.node = measure_all_reduce(range(first, first + per_node), device)
        board.tell(report)
        report.all = report.node if world == per_node else measure_all_reduce(range(world), device)


# -- the process


def write(result: Result) -> None:
    """Write the result atomically."""
    folder = Path(os.environ.get("RUN_DIR", "."))
    draft = folder / f".{RESULT}.{os.getpid()}"
    draft.write_text(json.dumps(asdict(result)) + "\n")
    draft.replace(folder / RESULT)


def _plain(text: str) -> str:
    """Return text in one line, without characters that JSON or the job's shell would quote."""
    return " ".join(
        "".join(
            c if c.isascii() and c.isprintable() and c not in QUOTED else " " for c in text
        ).split()
    )


def finish(board: Board, wanted: Wanted, began: float, until: float, slowly: bool) -> None:
    """Wait for all ranks until a deadline, write the result and end the process."""
    while board.store.add("lumitui/done", 0) < board.world and time.monotonic() < until:
        time.sleep(0.05)
    reports = board.reports()
    result = conclude(reports, wanted, time.monotonic() - began, time.time())
    if slowly and None in reports:
        result = Result("not run", "PyTorch took too long to start", result.seconds)
    write(result)
    for item in result.findings[:20]:
        print(f"preflight: {item.text}")
    figures = ", ".join(f"{kind} {value:g} {UNITS[kind]}" for kind, value in result.figures.items())
    print(f"preflight: {result.state} after {result.seconds} s; {figures}", flush=True)
    os._exit(0)


def main() -> int:
    """Measure this rank; rank 0 writes the result."""
    began = time.monotonic()
    given = arguments()
    rank = int(os.environ.get("RANK", "0"))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    per_node = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    on_cpu = os.environ.get("TRAINER_DEVICE") == "cpu"
    wanted = Wanted(
        world, per_node, 0 if on_cpu else given.gpus, tuple(filter(None, given.bus.split(","))),
        given.gemm, given.in_node, given.all_nodes,
    )  # fmt: skip
    try:
        import torch.distributed  # noqa: F401
    except ImportError:
        if rank == 0:
            write(Result("not run", "no torch"))
        return 0
    if rank == 0:
        write(Result("begun", "the preflight stopped early"))
    until = began + given.seconds
    report = Report(_plain(os.environ.get("LUMITUI_NODE") or platform.node()), _cores())
    # If packages loaded slowly, silent ranks may be equally slow.
    slowly = time.monotonic() - began > given.seconds / 2
    board = Board(rank, world, given.seconds)
    # Rank 0 concludes when all are done or time is up, because its own part may hang.
    target, words = (
        (finish, (board.again(), wanted, began, until, slowly))
        if rank == 0
        else (_leave, (until + 2,))
    )
    last = threading.Thread(target=target, args=words, daemon=True)
    last.start()
    measure(board, report, wanted, local_rank, until)
    if rank == 0:
        last.join()
    sys.stdout.flush()
    os._exit(0)


def _leave(at: float) -> None:
    """End this rank at the deadline: rank 0 has decided, and no rank waits for it."""
    time.sleep(max(0.0, at - time.monotonic()))
    os._exit(0)


def _cores() -> tuple[int, ...]:
    return tuple(sorted(os.sched_getaffinity(0))) if sys.platform == "linux" else ()


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=25.0, help="maximum duration")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs of a node; 0: ranks on the CPU")
    parser.add_argument("--bus", default="", help="PCI bus of each local rank's GPU")
    parser.add_argument("--gemm", type=float, default=0.0, help="expected TFLOP/s of a GPU in bf16")
    parser.add_argument("--in-node", type=float, default=0.0, help="expected GB/s in a node")
    parser.add_argument("--all-nodes", type=float, default=0.0, help="expected GB/s of all nodes")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
