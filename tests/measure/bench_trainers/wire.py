"""Bytes on the wire in a step of each strategy, beside the theory of ring collectives.

All ranks run in a network namespace of their own, on its loopback interface, whose counter says
what they sent to each other: with what TCP adds, and nothing of other programs. The theory, for n
ranks and P parameters of 4 bytes, in bytes that each rank sends in a step; a ring all-reduce sends
2 (n-1)/n of its bytes, a gather and a reduce-scatter half of that:

    ddp            2 (n-1)/n x 4 P   an all-reduce of the gradients
    fsdp           4 (n-1)/n x 4 P   two gathers of the weights, and a reduce-scatter of the
                                     gradients, which gloo does as an all-reduce; with NCCL 3
    zero1, zero2   3 (n-1)/n x 4 P   DeepSpeed all-reduces the gradients
                                     (use_multi_rank_bucket_allreduce), and gathers the weights
    zero3          3 (n-1)/n x 4 P   as zero2: tensors this small stay whole
                                     (stage3_param_persistence_threshold), each a message
"""

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.measure.bench_trainers.row import Row
from tests.support.trainers.ranks import events, ranks

FIRST, LAST = 6, 16
"""Steps between which is counted: connections stand, buckets have their order."""
BATCH = 4
NOTE = f"""
from engine import training
real, calls = training.Training.step, []
def step(self, *words):
    calls.append(self)
    if self.me.rank == 0 and len(calls) in ({FIRST}, {LAST}):
        # Not /sys/class/net: it shows the namespace that it was mounted in.
        (sent,) = [line.split()[9] for line in open("/proc/self/net/dev") if "lo:" in line]
        with open("wire", "a") as file:
            print(sent, file=file)
    return real(self, *words)
training.Training.step = step
"""
CASES = {"ddp": 2, "fsdp": 4, "zero1": 3, "zero2": 3, "zero3": 3}
"""How often the size of the model is sent; see the top."""
MOST = {"zero3": 1.15}


def rows() -> Iterator[Row]:
    """Yield the kilobytes that a rank sends in a step, for two and four ranks."""
    if not shutil.which("unshare"):
        print("wire: unshare is not installed (util-linux); not measured", file=sys.stderr)
        return
    for strategy, passes in CASES.items():
        for count in (2, 4):
            # As another user than root a namespace of users comes first.
            alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "-r"]
            done = subprocess.run(
                [*alone, sys.executable, "-m", __spec__.name, strategy, str(count)],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            sent, parameters = json.loads(done.stdout.splitlines()[-1])
            theory = passes * (count - 1) / count * 4 * parameters
            yield Row(
                f"a step of {strategy}, {count} ranks",
                sent / 1000,
                "kB a rank",
                theory / 1000,
                f"theory: {passes} (n-1)/n x 4 P",
                most=MOST.get(strategy, 1.06),
                least=0.98,
            )


def count_bytes(strategy: str, count: int) -> tuple[float, int]:
    """Train in this network namespace; return a rank's bytes a step, and the parameters."""
    loopback_up()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = ["--limit", str(BATCH * count * (LAST + 1)), "--epochs", "1", "--eval", "never"]
        words += ["--model", "vit", "--save-every", "1000"]
        if strategy.startswith("zero"):
            config = folder / "ds.json"
            optimizer = {"type": "Adam", "params": {"lr": 0.001, "torch_adam": True}}
            stage = {"stage": int(strategy[-1])}
            config.write_text(
                json.dumps(
                    {"train_micro_batch_size_per_gpu": BATCH, "optimizer": optimizer}
                    | {"zero_optimization": stage, "steps_per_print": 1000}
                )
            )
            program = ["deepspeed_zero.py", "--deepspeed_config", str(config)]
        else:
            program = [f"{strategy}.py", "--batch-size", str(BATCH)]
        run = folder / "run"
        with ranks(run, count, *program, *words, before=NOTE, GLOO_SOCKET_IFNAME="lo") as job:
            if any(job.wait()):
                raise SystemExit(job.output())
        first, last = map(int, (run / "wire").read_text().split())
        (start,) = events(run, "start")
        parameters = start["parameters"]
        assert isinstance(parameters, int)
        return (last - first) / (LAST - FIRST) / count, parameters


def loopback_up() -> None:
    """Switch the loopback interface of a new namespace on (netdevice(7), SIOCSIFFLAGS)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 1 | 64))


if __name__ == "__main__":
    print(json.dumps(count_bytes(sys.argv[1], int(sys.argv[2]))))
