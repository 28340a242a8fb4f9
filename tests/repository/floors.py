"""Places rooms on floors so that arrows lead down, cross little and pass between the rooms.

A room's floor is the longest path below it. An arrow that passes a floor has a gap between the
rooms there; arrows to the same room share it. Orders by the mean of the neighbours (Sugiyama's
method), then by swaps; the same rooms and arrows always give the same places.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

Arrow = tuple[str, str]
TRIES = 40  # orders to begin from; the best is kept
GAP, SPACE = 14.0, 48.0  # between an arrow and a room, between two rooms


@dataclass(frozen=True)
class Stop:
    """A room, or the gap that arrows to `room` pass on a floor above it."""

    room: str
    floor: int
    passing: bool = False


@dataclass
class Plan:
    """Floors from the top to the ground, each from left to right, and where each stop is."""

    floors: list[list[Stop]]
    routes: dict[Arrow, list[Stop]]  # the room, the gaps, the room
    widths: Mapping[str, float]
    x: dict[Stop, float] = field(default_factory=dict)

    def width(self, stop: Stop) -> float:
        """How wide a stop is."""
        return GAP if stop.passing else self.widths[stop.room]

    def links(self) -> set[tuple[Stop, Stop]]:
        """The steps of all routes from one floor to the next, each once."""
        return {step for route in self.routes.values() for step in pairwise(route)}


def floors_of(rooms: Iterable[str], arrows: Iterable[Arrow]) -> dict[str, int]:
    """Return each room's floor, 0 at the ground; raises ValueError for a circle."""
    below: dict[str, set[str]] = {room: set() for room in rooms}
    for room, other in arrows:
        below[room].add(other)
    floors: dict[str, int] = {}
    while len(floors) < len(below):
        ready = [room for room in below if room not in floors and below[room] <= floors.keys()]
        if not ready:
            raise ValueError(f"a circle among {sorted(below.keys() - floors.keys())}")
        floors |= {
            room: 1 + max((floors[other] for other in below[room]), default=-1) for room in ready
        }
    return floors


def plan(rooms: Mapping[str, float], arrows: Sequence[Arrow], room_for: float) -> Plan:
    """Place rooms (name and width) and arrows within the width `room_for`."""
    floor = floors_of(rooms, arrows)
    routes = {
        (room, other): [
            Stop(room, floor[room]),
            *(Stop(other, level, True) for level in range(floor[room] - 1, floor[other], -1)),
            Stop(other, floor[other]),
        ]
        for room, other in sorted(arrows)
    }
    stops = {Stop(room, floor[room]) for room in rooms}.union(*routes.values())
    top = max(floor.values())
    levels = [
        sorted((stop for stop in stops if stop.floor == level), key=lambda stop: stop.room)
        for level in range(top, -1, -1)
    ]
    found = Plan(levels, routes, rooms)
    _order(found)
    _place(found, room_for)
    return found


def _crossings(upper: Sequence[Stop], lower: Sequence[Stop], links: set[tuple[Stop, Stop]]) -> int:
    at = {stop: place for level in (upper, lower) for place, stop in enumerate(level)}
    ends = sorted((at[a], at[b]) for a, b in links if a in at and b in at)
    return sum(
        other[1] < end[1] and other[0] != end[0]
        for place, end in enumerate(ends)
        for other in ends[place + 1 :]
    )


def _order(made: Plan) -> None:
    """Order each floor so that few arrows cross."""
    links = made.links()
    near: dict[Stop, list[Stop]] = {}
    for one, other in sorted(links, key=repr):
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    levels, chance = made.floors, random.Random(1)
    best, fewest = [list(level) for level in levels], _all_crossings(levels, links)
    for _ in range(TRIES):
        for level in levels:
            chance.shuffle(level)
        for turn in range(8):
            at = {stop: place for level in levels for place, stop in enumerate(level)}
            down = turn % 2 == 0
            for level in levels if down else reversed(levels):
                for stop in level:
                    beside = [n for n in near.get(stop, []) if (n.floor > stop.floor) == down]
                    at[stop] = round(fmean(at[n] for n in beside)) if beside else at[stop]
                level.sort(key=lambda stop: at[stop])
                at |= {stop: place for place, stop in enumerate(level)}
        _swap(levels, links)
        if (count := _all_crossings(levels, links)) < fewest:
            best, fewest = [list(level) for level in levels], count
    made.floors = best


def _all_crossings(levels: Sequence[list[Stop]], links: set[tuple[Stop, Stop]]) -> int:
    return sum(_crossings(*pair, links) for pair in pairwise(levels))


def _swap(levels: list[list[Stop]], links: set[tuple[Stop, Stop]]) -> None:
    """Swap neighbours as long as that saves a crossing."""
    better = True
    while better:
        better = False
        for number, level in enumerate(levels):
            around = levels[max(0, number - 1) : number + 2]
            for place in range(len(level) - 1):
                before = _all_crossings(around, links)
                level[place : place + 2] = level[place : place + 2][::-1]
                if _all_crossings(around, links) < before:
                    better = True
                else:
                    level[place : place + 2] = level[place : place + 2][::-1]


def _place(made: Plan, room_for: float) -> None:
    """Give each stop its x: near the stops it is linked with, in the floor's order."""
    pull: dict[Stop, list[tuple[Stop, float]]] = {}
    for one, other in sorted(made.links(), key=repr):
        weight = 1.0 + 3.0 * one.passing + 3.0 * other.passing  # long arrows straight
        pull.setdefault(one, []).append((other, weight))
        pull.setdefault(other, []).append((one, weight))
    made.x = {stop: room_for / 2 for level in made.floors for stop in level}
    for turn in range(120):
        for level in made.floors if turn % 2 else reversed(made.floors):
            wanted = {}
            for stop in level:
                links = pull.get(stop, [(stop, 1.0)])
                total = sum(weight for _, weight in links)
                wanted[stop] = sum(made.x[other] * weight for other, weight in links) / total
            _spread(made, level, wanted, room_for)
    left = min(x - made.width(stop) / 2 for stop, x in made.x.items())
    right = max(x + made.width(stop) / 2 for stop, x in made.x.items())
    made.x = {stop: x + (room_for - left - right) / 2 for stop, x in made.x.items()}


def _spread(
    made: Plan, level: Sequence[Stop], wanted: Mapping[Stop, float], room_for: float
) -> None:
    """Put a floor's stops as near to `wanted` as their order and widths allow."""
    offsets = [made.width(level[0]) / 2]
    for left, right in pairwise(level):
        space = GAP if left.passing or right.passing else SPACE
        offsets.append(offsets[-1] + (made.width(left) + made.width(right)) / 2 + space)
    spare = room_for - offsets[-1] - made.width(level[-1]) / 2
    if spare < 0:
        raise ValueError(f"floor {level[0].floor} does not fit into {room_for:g}")
    # Pool adjacent violators: neighbours that want to pass each other share their mean.
    pools: list[list[float]] = []
    for stop, offset in zip(level, offsets, strict=True):
        pools.append([wanted[stop] - offset])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    shifts = [min(max(fmean(pool), 0.0), spare) for pool in pools for _ in pool]
    for stop, offset, shift in zip(level, offsets, shifts, strict=True):
        made.x[stop] = offset + shift
