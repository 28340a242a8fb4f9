"""Which rank do the others wait for? From what the ranks of all nodes last did. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WHILE = {
    "start": ("it starts", "they start"),
    "data": ("it loads data", "they load data"),
    "save": ("it saves", "they save"),
    "test": ("it tests", "they test"),
    "compile": ("it compiles", "they compile"),
}
"""What one rank, and several, do meanwhile; a step is what they are expected to do."""


@dataclass(frozen=True)
class Seen:
    """One rank, as its node sees it."""

    rank: int
    node: str
    count: int
    """How often it has moved."""
    step: int
    doing: str
    still: float
    """Seconds since it last moved."""
    limit: float
    """How many of them are usual while it does this."""
    silent: bool
    """Whether no thread of its process runs."""
    state: str = ""
    """The kernel's letter for the process, where the node shows it."""


@dataclass(frozen=True)
class Stall:
    """What does not move, in one sentence."""

    ranks: tuple[int, ...]
    """Those that the others wait for; none where nobody is behind."""
    nodes: tuple[str, ...]
    step: int
    seconds: float
    doing: str
    sentence: str

    @property
    def key(self) -> object:
        """What tells one stall from another."""
        return self.ranks, self.step


def judge(seen: Sequence[Seen], nodes: Mapping[int, str], least: float) -> Stall | None:
    """Return what hangs; None while everything takes no longer than is usual.

    `nodes` has the node of each rank. A rank that is missing in `seen` is on a node that
    says nothing. `least`: seconds before anything is said.

    A process that is stopped or does not run at all is behind. Else it is the rank that has moved
    least often: in each step all ranks move as often, and those who wait for it are ahead.
    """
    if not seen:
        return None
    absent = sorted(set(nodes) - {one.rank for one in seen})
    frozen = [one for one in seen if _is_frozen(one, least)]
    if frozen:
        return _stall(frozen, seen, min(one.still for one in frozen))
    slowest = min(seen, key=lambda one: one.count)
    if absent:
        # A node that works says so within half of `least`, when another one is still.
        still = min(one.still for one in seen)
        if still < max(slowest.limit, 1.25 * least):
            return None
        gone = [Seen(rank, nodes[rank], 0, 0, "step", still, 0.0, True) for rank in absent]
        return _stall(gone, seen, still)
    behind = [one for one in seen if one.count == slowest.count]
    if any(one.still < one.limit for one in behind):
        return None
    return _stall(behind, seen, min(one.still for one in behind))


def _is_frozen(one: Seen, least: float) -> bool:
    if one.state in ("T", "t"):
        return one.still >= least
    return one.silent and one.still >= one.limit


def _stall(behind: Sequence[Seen], seen: Sequence[Seen], seconds: float) -> Stall:
    others = [one for one in seen if one not in behind]
    step = max(one.step for one in others or behind)
    doing = {one.doing for one in behind}
    what = doing.pop() if len(doing) == 1 else "step"
    single, plural = _WHILE.get(what, ("", ""))
    if not others and len(seen) > 1:
        meanwhile = f" while {plural}" if plural else ""
        said = f"No rank has moved for {seconds:.0f} s{meanwhile}, at step {step}; none is behind."
        return Stall((), (), step, seconds, what, said)
    verb = single if len(behind) == 1 else plural
    meanwhile = f" while {verb}" if verb else ""
    said = f"{_ranks(behind)} not moved for {seconds:.0f} s{meanwhile}{_process(behind)}"
    said += f"; the others wait at step {step}." if others else f", at step {step}."
    ranks = tuple(one.rank for one in behind)
    return Stall(ranks, _nodes(behind), step, seconds, what, said)


def _process(behind: Sequence[Seen]) -> str:
    states = {one.state for one in behind}
    if states <= {"T", "t"}:
        return ", its process is stopped" if len(behind) == 1 else ", their processes are stopped"
    if states == {"D"}:
        return ", waiting for a disk or a driver"
    return ""


def _ranks(behind: Sequence[Seen]) -> str:
    """Return `Rank 9 on nid5002 has`, or the like of several ranks and nodes."""
    nodes = _nodes(behind)
    where = nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes, {nodes[0]} first,"
    if len(behind) == 1:
        return f"Rank {behind[0].rank} on {where} has"
    numbers = sorted(one.rank for one in behind)
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"Ranks {numbers[0]} to {numbers[-1]} on {where} have"
    listed = ", ".join(map(str, numbers[:6])) + (", …" if len(numbers) > 6 else "")
    return f"Ranks {listed} on {where} have"


def _nodes(behind: Sequence[Seen]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.node for one in behind))
