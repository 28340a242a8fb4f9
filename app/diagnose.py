"""Why a run failed: a table of rules over Slurm's words and the end of the log. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lumitui.remote.scheduler import State

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LABEL = re.compile(r"^ *(?P<task>\d+): (?P<rest>.*)$")
_RANK = re.compile(r"\[rank ?(?P<rank>\d+)\]:?")
STOPPED_EARLY = 85
"""The bundled trainers' exit code when they saved on a signal (trainers/reporting.py)."""


@dataclass(frozen=True)
class Diagnosis:
    """One likely cause."""

    id: str
    sentence: str
    do: str
    line: str = ""
    """The line of the log that says so, without control characters."""
    rank: int | None = None


@dataclass(frozen=True)
class _Rule:
    """A pattern of a log line, and what it means; `{0}` is the pattern's first group."""

    id: str
    pattern: str
    sentence: str
    do: str


RULES: tuple[_Rule, ...] = (
    _Rule(
        "binding",
        r"CPU binding outside of job step allocation|Unable to satisfy cpu bind request",
        "The masks ask for cores the job does not have.",
        "Use whole nodes (`exclusive: true` or a partition of whole nodes), or `binding: none`.",
    ),
    _Rule(
        "gpu-memory",
        r"(?:HIP|CUDA) out of memory|OutOfMemoryError|hipErrorOutOfMemory|CUDA error: out of memory",
        "A GPU ran out of memory.",
        "Make the batch a rank smaller, or split more (ZeRO, FSDP).",
    ),
    _Rule(
        "host-memory",
        r"oom[-_]kill|Out Of Memory|oom_kill event|DefaultCPUAllocator: .*allocate memory",
        "The node ran out of memory.",
        "Ask for more (`memory:`), or use fewer loader workers.",
    ),
    _Rule(
        "image",
        r"could not open image (\S+)",
        "The container image {0} is not there.",
        "Check `container.image`; `lumitui doctor` looks for the profile's images.",
    ),
    _Rule(
        "container-permission",
        r"FATAL: +permission denied",
        "The container was given something it cannot run.",
        "Name an interpreter before the script, and check its path inside the container.",
    ),
    _Rule(
        "port",
        r"EADDRINUSE|Address already in use|address already in use",
        "The rendezvous port was taken.",
        "Resubmit: the next job has another port.",
    ),
    _Rule(
        "disk",
        r"No space left on device|Disk quota exceeded",
        "A disk or a quota is full.",
        "Free space there (`lumitui prune` removes old snapshots), and resubmit.",
    ),
    _Rule(
        "watchdog",
        r"Watchdog caught collective operation timeout|NCCL.*[Tt]imeout|collective operation timed out",
        "A rank did not come to a collective operation in time.",
        "Look for the rank that stopped before; a hang in loading data is the usual cause.",
    ),
    _Rule(
        "rendezvous",
        r"RendezvousTimeoutError|rendezvous.*timed out|The client socket has timed out"
        r"|failed to connect to .*:\d+",
        "The ranks did not find each other.",
        "Check that every node runs the launcher, and the network variables of the container.",
    ),
    _Rule(
        "ordinal",
        r"invalid device ordinal",
        "A rank asked for a GPU it cannot see.",
        "Use LOCAL_RANK with all GPUs visible; remove options that hide GPUs.",
    ),
    _Rule(
        "deepspeed-batch",
        r"train_batch_size is not equal to|Micro batch size per gpu: \d+ has to be",
        "DeepSpeed's batch fields do not fit the number of ranks.",
        "Let lumitui recompute them: `deepspeed: {config: …}` in the job file.",
    ),
    _Rule(
        "module",
        r"ModuleNotFoundError: No module named '?([\w.]+)",
        "The Python module {0} is not there.",
        "Use an image or `container.venv` that has it.",
    ),
    _Rule(
        "lmod",
        r"The following module\(s\) (?:are unknown|cannot be loaded)|Lmod has detected the following error",
        "A module could not be loaded.",
        "Check the generation of the container; the site may have renamed it.",
    ),
    _Rule(
        "file",
        r"(?:FileNotFoundError|No such file or directory): ?'?([^'\n]*)",
        "A file is not there: {0}",
        "Paths are relative to `workdir:`; data is brought in by `links:`.",
    ),
    _Rule(
        "segfault",
        r"Segmentation fault|SIGSEGV",
        "A rank crashed in native code.",
        "Resubmit once; if it comes again, try another image.",
    ),
)

_SIGNALS = {137: ("killed (SIGKILL)", "memory is the usual cause"), 139: ("a crash (SIGSEGV)", "")}
_SIGNALS |= {143: ("ended (SIGTERM)", "by Slurm or the launcher")}


def diagnose(
    state: State, word: str, reason: str, rc: int | None, failed_rank: int | None, log_tail: str
) -> list[Diagnosis]:
    """Return why a run ended as it did, the likeliest first; [] when it did not fail."""
    if not state.is_final or state in (State.DONE,):
        return []
    found = list(_from_state(state, word, reason, rc))
    found += _from_log(log_tail)
    trace = _traceback(log_tail, failed_rank)
    if trace and not any(item.line == trace.line for item in found):
        found.append(trace)
    if not found and rc:
        words, why = _SIGNALS.get(rc, (f"exit code {rc}", ""))
        rank = "" if failed_rank is None else f"Rank {failed_rank}: "
        found.append(
            Diagnosis(
                "exit", f"{rank}{words}{', ' + why if why else ''}.", "Read the log's end.",
                rank=failed_rank,
            )  # fmt: skip
        )
    return found


def _from_state(state: State, word: str, reason: str, rc: int | None) -> Iterator[Diagnosis]:
    if rc == STOPPED_EARLY:
        yield Diagnosis(
            "stopped-early",
            "It saved a checkpoint on the signal before the time limit, and ended.",
            "`lumitui resubmit` continues from there.",
        )
    elif state is State.TIMEOUT:
        yield Diagnosis(
            "time-limit",
            "The time limit passed.",
            "Continue from the last checkpoint, with more time (`--set time=…`) or nodes.",
        )
    if state is State.OUT_OF_MEMORY:
        yield Diagnosis("host-memory", "The node ran out of memory.", "Ask for more (`memory:`).")
    if state is State.NODE_FAILED:
        yield Diagnosis("node", f"A node failed ({word}).", "Resubmit; it was not your code.")
    if state is State.PREEMPTED:
        yield Diagnosis("preempted", "Another job took the nodes.", "Resubmit from the checkpoint.")
    if state is State.CANCELLED:
        yield Diagnosis("cancelled", f"It was cancelled {reason}".strip() + ".", "")
    if state in (State.REFUSED, State.NOT_SENT):
        yield Diagnosis("refused", reason or "No job was created.", "Mend that and submit again.")


def _from_log(log_tail: str) -> Iterator[Diagnosis]:
    """Yield the rules' findings in the order of the log: what came first is the cause."""
    lines = log_tail.splitlines()
    seen: set[str] = set()
    for raw in lines:
        line = clean(raw)
        for rule in RULES:
            match = re.search(rule.pattern, line)
            if match and rule.id not in seen:
                seen.add(rule.id)
                group = match.group(1).strip() if match.re.groups and match.group(1) else ""
                yield Diagnosis(
                    rule.id, rule.sentence.replace("{0}", group), rule.do, line, rank_of(line)
                )


def _traceback(log_tail: str, failed_rank: int | None) -> Diagnosis | None:
    """Return the exception of the first failing rank: by the exit file, else the first one."""
    first: Diagnosis | None = None
    open_for: set[int | None] = set()
    for raw in log_tail.splitlines():
        line = clean(raw)
        rank = rank_of(line)
        text = _RANK.sub("", _unlabelled(line)).lstrip(": ")
        if text.startswith("Traceback (most recent call last)"):
            open_for.add(rank)
        elif rank in open_for and re.match(r"^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b", text):
            open_for.discard(rank)
            item = Diagnosis(
                "traceback",
                f"{'A rank' if rank is None else f'Rank {rank}'} raised {text[:200]}",
                "Read its traceback in the log.",
                line,
                rank,
            )
            if rank == failed_rank and failed_rank is not None:
                return item
            first = first or item
    return first


def rank_of(line: str) -> int | None:
    """Return the rank a log line is of: torch's `[rank3]:`, or srun's label `3: `."""
    if match := _RANK.search(line):
        return int(match["rank"][:9])
    match = _LABEL.match(line)
    return int(match["task"][:9]) if match else None


def clean(line: str) -> str:
    """Return a line of remote text without control characters, at most 500 characters."""
    return _ANSI.sub("", line)[:500]


def _unlabelled(line: str) -> str:
    match = _LABEL.match(line)
    return match["rest"] if match else line
