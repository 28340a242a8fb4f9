"""The words for states in a filter: a state's own, and those for groups of states. Pure."""

from collections.abc import Mapping

from lumitui.remote.site.states import State

STATE_GROUPS: Mapping[str, frozenset[State]] = {
    "running": frozenset({State.RUNNING, State.FINISHING}),
    "waiting": frozenset({State.QUEUED, State.SENDING}),
    "failed": frozenset(
        {State.FAILED, State.TIMEOUT, State.OUT_OF_MEMORY, State.NODE_FAILED, State.PREEMPTED}
    ),
    "refused": frozenset({State.REFUSED}),
    "not sent": frozenset({State.NOT_SENT}),
    "unknown": frozenset({State.UNKNOWN}),
    "unfinished": frozenset(state for state in State if not state.is_final),
    "ended": frozenset(state for state in State if state.is_final),
}
"""Several states under one word; the bar at the top counts the first six."""
COUNTED_STATES = ("running", "waiting", "failed", "refused", "not sent", "unknown")
"""The groups that the bar at the top counts."""
WENT_WRONG = STATE_GROUPS["failed"] | STATE_GROUPS["refused"] | STATE_GROUPS["not sent"]
"""The states of a run that ended, or never began, in a way that a user should read of."""
_SHORT = {"oom": State.OUT_OF_MEMORY, "pending": State.QUEUED, "completed": State.DONE}
"""Slurm's words for states."""
_LEAST = 3
"""Minimum number of letters for a partial word."""


def states_named(word: str) -> frozenset[State]:
    """Return the states for `word`: a group, a state, or its beginning; empty if none match."""
    name = _plain(word)
    if name in STATE_GROUPS:
        return STATE_GROUPS[name]
    if name in _SHORT:
        return frozenset({_SHORT[name]})
    return frozenset(
        state
        for state in State
        if name == state.value or (len(name) >= _LEAST and state.value.startswith(name))
    )


def states_like(word: str) -> frozenset[State]:
    """Return the states that a search word may mean: `fail`, `memory`; empty if none."""
    name = _plain(word)
    if len(name) < _LEAST:
        return frozenset()
    groups = (states for group, states in STATE_GROUPS.items() if group.startswith(name))
    words = {state for state in State if any(w.startswith(name) for w in state.value.split())}
    return frozenset(words | states_named(name)).union(*groups)


def _plain(word: str) -> str:
    return word.casefold().replace("-", " ").replace("_", " ").strip()
