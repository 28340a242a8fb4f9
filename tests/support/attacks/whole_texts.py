"""The texts that are spoilt, as they are when they are whole: a job file, replies, metrics."""

import json

from lumitui.remote.scheduler.scheduler_protocol import Watch
from tests.support.places import ROOT
from tests.support.replies.schedulers import ACCOUNT, QUEUE

EXIT = b'{"rc": 7, "rank": 3, "job": "317", "attempt": 1, "ended": 1795236600}'
"""One exit file."""
BINDING = json.dumps(
    [
        {"rank": rank, "local_rank": rank, "host": "nid1", "cores": "1-7", "gpus": str(rank)}
        for rank in range(8)
    ]
).encode()
"""What eight ranks report to the proof of binding."""
METRICS = (
    b'{"event": "start", "world_size": 8, "global_batch": 256, "device": "cuda"}\n'
    b'{"step": 1, "epoch": 1, "loss": 0.5, "lr": 0.1, "samples_per_s": 900.5, "seconds": 1.5}\n'
    b'{"step": 2, "loss": NaN, "samples_per_s": 1e308}\n{"step": 3, "loss": 1e308}\n'
    b'{"event": "eval", "step": 3, "test_accuracy": 0.9}\n{"event": "end", "seconds": 9.0}\n'
)
"""Lines of metrics.jsonl."""
WATCHES = [Watch("vit-tiny-000001", "/s/runs/a", "317"), Watch("b", "/s/runs/b", "320")]
"""The runs that ANSWER is about."""
ANSWER = (
    b"M clock\n1795236600\nM end\nM queue 0\n" + QUEUE.encode() + b"M end\nM account 0\n"
    + ACCOUNT.encode() + b"M end\nM sizes\n12 /s/runs/a/attempt-1.out\nM end\nM exit 0 1\n" + EXIT
    + b"\n\nM end\nM binding 0\n" + BINDING + b"\n\nM end\nM metrics 0\n" + METRICS + b"\nM end\n"
    + b"M missing 1\nM end\n"
)  # fmt: skip
"""One whole reply to a poll; its marker is M."""
JOB = b"""\
name: vit-tiny  # a comment
site: lumi
account: project_462000001
partition: standard-g
nodes: 2
time: "01:00:00"
launcher: torchrun
script: train.py
args: [--epochs, 10, "a b", 'c']
env: {MIOPEN_LOG_LEVEL: "4"}
secrets: [WANDB_API_KEY]
container: {generation: laif, binds: [/a, /b:/c]}
links: {data: /scratch/x}
metrics: {images: 'Images/sec: (\\d+)'}
scale: {batch: {arg: --batch-size, keep: per_gpu}, lr: {arg: --lr, rule: linear}}
signal: USR1@120
"""
"""A job file with every kind of field."""
PROFILE = b"""\
extends: lumi
title: mine
hosts: {login: lumi.csc.fi, fingerprints: {ed25519: "SHA256:abc"}}
account: {pattern: "^project_46\\\\d+$", example: project_462000001}
work_root: "/scratch/{account}/{user}/lumitui"
gpu_request: "--gpus-per-node={gpus}"
poll_seconds: 60
partitions: {small-g: {max_time: "3-00:00:00", max_nodes: 4, allocation: shared}}
rules:
  - {id: x, severity: note, field: launcher, matches: srun, message: m, do: d, source: s}
"""
"""A profile that extends LUMI's."""
DOCTOR = (ROOT / "tests" / "support" / "replies" / "doctor-22.05.txt").read_bytes()
"""What doctor's request brought from the mini cluster; MARKER stands for its marker."""
