"""Draws docs/architecture.svg from the code's imports: packages as rooms, on floors.

make picture
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import grimp

from tests.repository.floors import Arrow, Plan, Stop, plan
from tests.support.places import ROOT

PICTURE = ROOT / "docs" / "architecture.svg"
WIDTH, LEFT, RIGHT = 900, 44, 12  # pixels; the floors' numbers stand at the left
TALL, BETWEEN = 32, 44  # a room's height, the space to the next floor
LETTER = 8.0  # width of a letter
COLOURS = ("#1f6feb", "#c2410c", "#15803d", "#7c3aed", "#dc2626", "#0891b2", "#a16207", "#db2777",
           "#475569", "#65a30d", "#1e3a8a", "#78350f", "#0d9488")  # fmt: skip
HALVES = ("app", "remote")


def read_code() -> tuple[list[str], list[Arrow]]:
    """Return the rooms, `app.job`, and which imports which; `remote` is one room for app's."""
    graph = grimp.build_graph("lumitui", cache_dir=None)
    rooms = [
        module.removeprefix("lumitui.")
        for half in HALVES
        for module in sorted(graph.find_children(f"lumitui.{half}"))
    ]
    arrows = set()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            ends = [".".join(name.split(".")[1:3]) for name in (module, other)]
            if ends[0] != ends[1] and set(ends) <= set(rooms):
                ends[1] = ends[1] if ends[0].split(".")[0] == ends[1].split(".")[0] else "remote"
                arrows.add((ends[0], ends[1]))
    return rooms, sorted(arrows)


def drawn(svg: str) -> tuple[list[str], list[Arrow]]:
    """Return the rooms and the arrows of a picture, as `read_code` has them."""
    arrows = re.findall(r'data-arrow="(\S+) (\S+)"', svg)
    return re.findall(r'data-room="(\S+\.\S+)"', svg), sorted(arrows)


def draw(rooms: Sequence[str], arrows: Sequence[Arrow]) -> str:
    """Return the picture: app above remote."""
    parts, top, floors = [], 92.0, 0
    for half in HALVES:
        inside = [room for room in rooms if room.startswith(f"{half}.")]
        own = [arrow for arrow in arrows if arrow[0] in inside]
        names = [*inside, *(["remote"] if any(arrow[1] == "remote" for arrow in own) else [])]
        widths = {name: len(name.split(".")[-1]) * LETTER + 36 for name in names}
        widths |= {"remote": 640} if "remote" in names else {}
        placed = plan(widths, own, WIDTH - LEFT - RIGHT)
        count = len(placed.floors) - ("remote" in names)
        out = sum(arrow[1] == "remote" for arrow in own)
        head = f"{half}: {len(inside)} rooms, {count} floors, {len(own) - out} arrows"
        head += f", and {out} to remote, which is drawn below" if out else ""
        parts += [text(14, top, head, 15, "bold"), *panel(placed, top + 16)]
        top += 16 + len(placed.floors) * (TALL + BETWEEN) + 26
        floors += count
    height = round(top - 20)
    title = f"lumitui: {len(rooms)} rooms, {floors} floors, {len(arrows)} arrows"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="Fira Code, Menlo, Consolas, monospace">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(14, 28, title, 19, "bold"),
        text(
            14,
            48,
            "A room is a package or a module beside the packages; an arrow is an import,",
            12,
        ),
        text(14, 64, "in the colour of the room it leads to. Every arrow leads down.", 12),
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def panel(placed: Plan, top: float) -> Iterable[str]:
    """Draw floors, arrows and rooms of one half; `top` is the upper edge."""
    names = sorted(placed.widths)
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    ceiling = {
        stop.floor: top + BETWEEN / 2 + place * (TALL + BETWEEN)
        for place, level in enumerate(placed.floors)
        for stop in level
    }
    ground = 1 if "remote" in placed.widths else 0  # remote is the ground that app stands on
    for floor, y in ceiling.items():
        if (floor - ground) % 2 == 0:
            edge, tall = y - BETWEEN / 2, TALL + BETWEEN
            yield f'<rect y="{edge:g}" width="{WIDTH}" height="{tall}" fill="#f6f8fa"/>'
        if floor >= ground:
            yield text(16, y + TALL / 2 + 5, str(floor - ground), 13, colour="#8b949e")
    for (room, other), route in placed.routes.items():
        start = LEFT + _port(placed, room, route)
        line = f"M{start:.1f} {ceiling[route[0].floor] + TALL:g}"
        x, y = start, ceiling[route[0].floor] + TALL
        for stop in route[1:]:
            to, under = LEFT + placed.x[stop], ceiling[stop.floor] - (0 if stop.passing else 5)
            middle = (y + under) / 2
            line += f"C{x:.1f} {middle:g} {to:.1f} {middle:g} {to:.1f} {under:g}"
            x, y = to, ceiling[stop.floor] + TALL
            line += f"V{y:g}" if stop.passing else ""
        yield (
            f'<path data-arrow="{room} {other}" d="{line}" fill="none" stroke="{colours[other]}" '
            'stroke-width="1.4"/>'
        )
    for stop in (stop for level in placed.floors for stop in level if not stop.passing):
        yield from _room(placed, stop, ceiling[stop.floor], colours[stop.room])


def _room(placed: Plan, stop: Stop, y: float, colour: str) -> Iterable[str]:
    """Draw a room, and the head of the arrows that lead to it."""
    x, wide = LEFT + placed.x[stop], placed.widths[stop.room]
    yield (
        f'<rect data-room="{stop.room}" x="{x - wide / 2:.1f}" y="{y:g}" width="{wide:g}" '
        f'height="{TALL}" rx="5" fill="#ffffff" stroke="{colour}" stroke-width="1.6"/>'
    )
    name = stop.room.split(".")[-1]
    yield text(x, y + TALL / 2 + 5, name, 13, "bold", anchor="middle")
    if any(other == stop.room for _, other in placed.routes):
        yield f'<path d="M{x - 4.5:.1f} {y - 8:g}h9l-4.5 8z" fill="{colour}"/>'


def _port(placed: Plan, room: str, route: Sequence[Stop]) -> float:
    """Return where at a room's lower edge an arrow leaves: in the order of where it goes."""
    next_stops = {other[1] for (start, _), other in placed.routes.items() if start == room}
    order = sorted(next_stops, key=lambda stop: (placed.x[stop], stop.room))
    step = (placed.widths[room] - 16) / len(order)
    return placed.x[route[0]] + (order.index(route[1]) - (len(order) - 1) / 2) * step


def text(
    x: float, y: float, words: str, size: int, weight: str = "normal",
    colour: str = "#1f2328", anchor: str = "start",
) -> str:  # fmt: skip
    """Return a line of text; `x` is its left end, or its middle."""
    return (
        f'<text x="{x:.1f}" y="{y:g}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )


def main(path: Path = PICTURE) -> None:
    """Write the picture."""
    path.write_text(draw(*read_code()), encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
