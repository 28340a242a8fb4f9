"""Rules about a program's arguments, held against the options that it reads."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.program.options import ParserOptions, given_options, options_of
from lumitui.app.knowledge.program.step_program import runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site

_ARGPARSE = "docs.python.org, argparse: parse_args, allow_abbrev"
_LAUNCHERS = (
    "nproc-per-node nnodes node-rank master-addr master-port rdzv-id rdzv-backend rdzv-endpoint "
    "rdzv-conf standalone max-restarts redirects tee no-python num-processes num-machines "
    "machine-rank main-process-ip main-process-port num-gpus num-nodes hostfile numa-binding"
)
"""Options of torchrun, accelerate and DeepSpeed's launcher."""
_SEVERAL = re.compile(r"--?[A-Za-z][\w-]*\s+\S")
_ONE_GPU = re.compile(r"(?:cuda:|hip:|gpu:)?\d{1,2}")
_DEVICE = ("device", "gpu", "gpu_id", "gpu_ids", "device_id", "device_ids", "cuda_device",
           "local_rank", "cuda")  # fmt: skip


@rule(
    "unknown-argument",
    "warning",
    "an argument that the program does not know",
    why="argparse prints its usage and ends with exit code 2: all ranks end in their first second.",
    source=_ARGPARSE,
)
def _unknown(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        options = options_of(run)
        if options is None:
            continue
        for number in given_options(run):
            word = run.step.arguments[number]
            flag = word.known.partition("=")[0]
            if "$" in flag or _SEVERAL.match(word.known) or word.at.field == "deepspeed.config":
                continue
            added = job.origin == "job file" and flag in ("--deepspeed", "--deepspeed_config")
            if not options.knows(word.known) and not added:  # by lumitui, and not by the user
                yield Hit(
                    f"{options.file} has no argument {flag}: argparse ends each rank with exit "
                    "code 2.",
                    _instead(job, options, flag),
                    word.at,
                )


def _instead(job: ScriptJob, options: ParserOptions, flag: str) -> str:
    if flag.lstrip("-").replace("_", "-") in _LAUNCHERS.split():
        return (
            "Leave it out: lumitui gives it to the launcher itself."
            if job.origin == "job file"
            else f"Write it before {options.file}, where the launcher reads it."
        )
    near = options.near(flag)
    if near:
        return f"Write {near}, which it knows."
    known = ", ".join(options.flags[:8]) + (", …" if len(options.flags) > 8 else "")
    return f"Write one that it knows ({known}), or add it to the program."


@rule(
    "arguments-in-one-word",
    "warning",
    "several arguments in one word",
    why="No shell splits the word at its blanks: the program gets it as one argument, which it "
    "does not know.",
    source=_ARGPARSE,
)
def _several(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step in job.training:
        program = step.program.known if step.program else ""
        text = job.files.get(program.removeprefix("./"), "")
        if not step.python or "shlex" in text:
            continue
        for word in step.arguments:
            if _SEVERAL.match(word.known) and "$" not in word.known:
                parts = ", ".join(word.known.split())
                yield Hit(
                    f"'{word.known}' is one argument with blanks in it, since no shell splits it.",
                    f"Write [{parts}]."
                    if job.origin == "job file"
                    else f"Write {word.known} without quotes.",
                    word.at,
                )


@rule(
    "one-device-for-all",
    "warning",
    "an argument that puts all ranks of a node on one GPU",
    why="Each rank gets the same arguments. Those of a node share one GPU: NCCL refuses it, or "
    "they run out of memory, and the other GPUs are idle but billed.",
    source="docs.pytorch.org/tutorials/intermediate/ddp_tutorial; NVIDIA/nccl, src/init.cc: "
    "Duplicate GPU detected; github.com/Peterande/D-FINE/issues/289",
)
def _one_device(job: ScriptJob, site: Site) -> Iterator[Hit]:
    per_node = job.rank.per_node or 1
    if per_node < 2 or job.rank.visible_gpus == "one" or site.node.on_cpu:
        return
    for step in job.training:
        for flag, value in step.named_arguments():
            named = flag.lstrip("-").replace("-", "_") in _DEVICE
            if named and _ONE_GPU.fullmatch(value.known):
                yield Hit(
                    f"{flag} {value.known} puts all {per_node} ranks of a node on one GPU.",
                    "Leave it out, and let the program take the GPU of its LOCAL_RANK.",
                    value.at,
                )
