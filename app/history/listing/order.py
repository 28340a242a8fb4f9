"""In which order runs are listed, as expressions of SQL that a page can go on from."""

from dataclasses import dataclass
from enum import StrEnum

from lumitui.app.history.run import NEWS_SECONDS
from lumitui.remote.site.states import State


class OrderBy(StrEnum):
    """What a list is sorted by."""

    NEWEST = "newest"
    STATE = "state"
    NAME = "name"
    NODES = "nodes"
    COST = "cost"
    END = "end"


@dataclass(frozen=True)
class Order:
    """What a list is sorted by, and whether its end comes first."""

    by: OrderBy = OrderBy.NEWEST
    reverse: bool = False

    def next(self) -> "Order":
        """Return the order that the key for it goes to."""
        kinds = list(OrderBy)
        return Order(kinds[(kinds.index(self.by) + 1) % len(kinds)])

    def chosen(self, by: OrderBy) -> "Order":
        """Return the order after a click on a heading: a second one turns it around."""
        return Order(by, not self.reverse) if by is self.by else Order(by)


NEWEST_FIRST = Order()
_FIRST = (
    State.RUNNING,
    State.FINISHING,
    State.QUEUED,
    State.SENDING,
    State.UNKNOWN,
    State.FAILED,
    State.OUT_OF_MEMORY,
    State.TIMEOUT,
    State.NODE_FAILED,
    State.PREEMPTED,
    State.REFUSED,
    State.NOT_SENT,
    State.DONE,
    State.CANCELLED,
)
"""What may need a user comes first."""
_STATE = (
    "CASE r.state "
    + " ".join(f"WHEN '{state}' THEN {rank}" for rank, state in enumerate(_FIRST))
    + f" ELSE {len(_FIRST)} END"
)
_NEVER = 1e12
"""The end of a run that has not ended: the list by end begins with those."""
# As Run.billed and Run.elapsed have it.
_OVER = ", ".join(f"'{state}'" for state in State if state.is_final or state is State.UNKNOWN)
_COST = (
    "-min(r.most, r.rate / 3600 * CASE"
    " WHEN r.started IS NULL THEN 0.0"
    f" WHEN r.state IN ({_OVER}) THEN max(0.0, coalesce(r.ended, r.updated) - r.started)"
    f" WHEN r.updated > 0 AND {{now}} - r.updated > {NEWS_SECONDS}"
    " THEN max(0.0, r.updated - r.started)"
    " ELSE max(0.0, {now} - r.started) END)"
)
_FIRST_KEY = {
    OrderBy.STATE: _STATE,
    OrderBy.NAME: "r.name COLLATE NOCASE",
    OrderBy.NODES: "-r.nodes",
    OrderBy.COST: _COST,
    OrderBy.END: f"-coalesce(r.ended, {_NEVER})",
}


def keys_of(order: Order, now: float) -> tuple[str, ...]:
    """Return the expressions that the list is sorted by, the last of which tell all runs apart."""
    if order.by is OrderBy.NEWEST:
        return ("r.created", "r.id")
    return (_FIRST_KEY[order.by].replace("{now}", repr(now)), "-r.created", "r.id")


def is_descending(order: Order) -> bool:
    """Return the direction of all keys: with one, SQLite compares them as one row."""
    return (order.by is OrderBy.NEWEST) != order.reverse
