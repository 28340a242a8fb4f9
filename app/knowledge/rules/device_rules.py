"""Rules about which rank a program takes itself for, and which GPU each rank takes."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.program.program_facts import Call, Role
from lumitui.app.knowledge.program.step_program import StepProgram, runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site

_TORCH = "docs.pytorch.org/tutorials/intermediate/ddp_tutorial"
_TAKES_DEVICE = ("set_device", "device", "to", "cuda", "DistributedDataParallel")
_CURRENT = re.compile(r"^['\"]cuda['\"]")
_FIRST = re.compile(r"['\"]cuda:0['\"]")


def _device_roles(call: Call) -> frozenset[Role]:
    """Return the roles in the arguments by which a call takes a device."""
    arguments = [*call.arguments]
    if call.last == "DistributedDataParallel":
        arguments = [one for one in arguments if one.name in ("device_ids", "output_device")]
    elif call.last in ("to", "cuda"):
        arguments = arguments[:1]
    return frozenset(role for one in arguments for role in one.mentions)


def _takes(run: StepProgram, role: Role) -> Iterator[tuple[str, Call]]:
    """Yield where a program takes the GPU that has this number."""
    for program, call in run.calls(*_TAKES_DEVICE):
        if role in _device_roles(call) and (call.last != "device" or "torch" in call.name):
            yield program.file, call


def _words(call: Call) -> str:
    inside = ", ".join(f"{one.name}={one.text}" if one.name else one.text for one in call.arguments)
    text = f"{call.name.removeprefix('?.')}({inside})"
    return text if len(text) <= 60 else f"{call.last}(…)"


@rule(
    "rank-as-device",
    "error",
    "the global rank as the number of a GPU, on several nodes",
    why="GPUs are numbered from 0 on each node. On the second node the rank is beyond the last "
    "GPU: `invalid device ordinal`.",
    source=f"{_TORCH}; github.com/meta-llama/llama-cookbook/issues/90",
)
def _rank_as_device(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if job.nodes < 2 or site.node.on_cpu:
        return
    for run in runs(job):
        per_node = job.rank.per_node
        if run.has("spawn") or (per_node is not None and per_node < 2):
            continue
        found = [*_takes(run, "rank")]
        first = f"rank {per_node}" if per_node else "the first rank"
        for file in dict.fromkeys(file for file, _call in found):
            call, *others = [call for where, call in found if where == file]
            lines = dict.fromkeys(str(other.at.line) for other in others)
            lines.pop(str(call.at.line), None)
            also = f" (and in line {', '.join(lines)})" if lines else ""
            yield Hit(
                f"{file} takes the GPU by the rank in the whole job, {_words(call)}{also}: {first} "
                "on the second node finds no such GPU.",
                'Take int(os.environ["LOCAL_RANK"]) instead.',
                call.at,
            )


@rule(
    "one-gpu-for-all",
    "error",
    "one fixed GPU for all ranks of a node",
    why="All ranks of a node compute on its first GPU, and the others stay idle; NCCL refuses it: "
    "`Duplicate GPU detected`.",
    source=f"{_TORCH}; github.com/NVIDIA/nccl, src/init.cc: Duplicate GPU detected; "
    "github.com/Peterande/D-FINE/issues/289",
)
def _one_gpu(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if (job.rank.per_node or 1) < 2 or job.rank.visible_gpus == "one" or site.node.on_cpu:
        return
    for run in runs(job):
        if not run.by_hand or any(True for _ in run.environment("CUDA_VISIBLE_DEVICES")):
            continue
        for program, call in run.calls(*_TAKES_DEVICE):
            where = [one for one in call.arguments if one.name in ("", "device_ids", "device")][:1]
            if call.last == "DistributedDataParallel":
                where = [one for one in call.arguments if one.name == "device_ids"]
            always = all("is_available" in one.text for one in call.guards)
            if where and _is_first(call, where[0].text) and always:
                yield Hit(
                    f"{program.file} takes GPU 0 in all {job.rank.per_node} ranks of a node, "
                    f"{_words(call)}.",
                    'Take the rank\'s own: torch.device("cuda", int(os.environ["LOCAL_RANK"])).',
                    call.at,
                )


def _is_first(call: Call, text: str) -> bool:
    if call.last in ("set_device", "cuda") and text == "0":
        return True
    return text == "[0]" if call.last == "DistributedDataParallel" else bool(_FIRST.search(text))


@rule(
    "no-own-gpu",
    "error",
    "ranks that never take a GPU of their own",
    why="Without set_device, `cuda` is GPU 0 in every rank: they share its memory, and NCCL "
    "refuses it or hangs.",
    source=f"{_TORCH}; github.com/clessig/atmorep/issues/77",
)
def _no_own_gpu(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if (job.rank.per_node or 1) < 2 or job.rank.visible_gpus != "all" or site.node.on_cpu:
        return
    for run in runs(job):
        if not run.by_hand or not run.closed or _knows_its_gpu(run):
            continue
        for program, call in run.calls("to", "cuda", "torch.device"):
            plain = call.last == "cuda" and not call.arguments
            if plain or (call.arguments and _CURRENT.search(call.arguments[0].text)):
                yield Hit(
                    f"{program.file} never says which GPU a rank takes: all {job.rank.per_node} "
                    "ranks of a node compute on GPU 0.",
                    'Call torch.cuda.set_device(int(os.environ["LOCAL_RANK"])) first.',
                    call.at,
                )
                return


def _knows_its_gpu(run: StepProgram) -> bool:
    if run.has("set_device", "set_default_device") or any(
        True for _ in run.environment("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
    ):
        return True
    calls = run.calls(*_TAKES_DEVICE, "init_process_group")
    return any(_device_roles(call) for _program, call in calls)


@rule(
    "ranks-unused",
    "warning",
    "several ranks of a program that never asks for its rank",
    why="Each rank does the whole work, on all data, and writes the same files: the GPUs are "
    "paid for, and nothing is faster.",
    source="docs.csc.fi, Multi-GPU and multi-node machine learning",
)
def _unused(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        told = any(
            re.search(r"RANK|PROCID|LOCALID|NODEID", word.text) for word in run.step.arguments
        )
        if run.world > 1 and not run.knows_ranks and not told and not run.program.fault:
            yield Hit(
                f"The job starts {run.world} ranks of {run.program.file}, which never asks for its "
                "rank: each does the whole work.",
                "Start it once, on one GPU, or share the work with DistributedDataParallel.",
                run.step.at,
            )
