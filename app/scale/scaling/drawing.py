"""How a training scales as an SVG drawing: throughput over nodes, with the ideal line. No library.

Both axes are logarithmic, so that ideal scaling is a straight line and every doubling is as wide.
The drawing has its own background and follows the viewer's light or dark colours.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from lumitui.app.job.settings import write_whole
from lumitui.app.scale.scaling.scaling_words import short
from lumitui.app.scale.scaling.study import Scaling, ScalingSize
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.safe_text import spell_out

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 24, 64, 72
_STYLE = """
 text { fill: #1f2328; font: 13px sans-serif }
 .title { font-size: 16px; font-weight: bold }
 .ground { fill: #ffffff }
 .quiet { fill: #59636e }
 .grid { stroke: #d0d7de; stroke-width: 1 }
 .ideal { stroke: #59636e; stroke-width: 1.5; stroke-dasharray: 6 5; fill: none }
 .line { stroke: #0550ae; stroke-width: 2; fill: none }
 .bar { stroke: #0550ae; stroke-width: 1.5 }
 .measured { fill: #0550ae }
 .predicted { fill: #ffffff; stroke: #0550ae; stroke-width: 2 }
 @media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .ground { fill: #0d1117 }
  .quiet { fill: #9198a1 }
  .grid { stroke: #30363d }
  .ideal { stroke: #9198a1 }
  .line, .bar { stroke: #79c0ff }
  .measured { fill: #79c0ff }
  .predicted { fill: #0d1117; stroke: #79c0ff }
 }
"""


class _Axes:
    """Where a number of GPUs and a throughput lie on the drawing."""

    def __init__(self, sizes: list[ScalingSize]) -> None:
        gpus = [size.gpus for size in sizes]
        ideal = [_ideal(sizes, size) for size in sizes]
        low = min([size.speed.low for size in sizes if size.speed] + ideal)
        high = max([size.speed.high for size in sizes if size.speed] + ideal)
        self.low, self.high = low / 1.15, high * 1.15
        self._first, self._last = math.log(min(gpus)), math.log(max(gpus))

    def x(self, gpus: int) -> float:
        span = self._last - self._first
        share = (math.log(gpus) - self._first) / span if span else 0.5
        return _LEFT + 20 + share * (_WIDTH - _LEFT - _RIGHT - 40)

    def y(self, speed: float) -> float:
        span = math.log(self.high) - math.log(self.low)
        share = (math.log(speed) - math.log(self.low)) / span
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def scaling_drawing(scaling: Scaling) -> str:
    """Return the drawing of what was measured and predicted.

    Raises:
        InputError: nothing was measured.
    """
    sizes = [size for size in scaling.sizes if size.speed and (size.measured or not size.refused)]
    if not scaling.measured:
        raise InputError(
            f"No run of the lineage of {scaling.run} has reported samples/s, so there is nothing "
            "to draw.",
            "Wait until a run has trained some steps.",
        )
    axes = _Axes(sizes)
    title = f"{scaling.run} on {scaling.site}: throughput"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{_safe(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{_WIDTH}" height="{_HEIGHT}"/>',
        _text(_LEFT, 28, title, "title"),
        *_grid(axes, sizes, scaling.device.plural),
        *_lines(axes, sizes),
        *(part for size in sizes for part in _mark(axes, size)),
        *_legend(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def write_scaling_drawing(path: Path, text: str) -> None:
    """Write a drawing (0600); an SVG that is there is replaced.

    Raises:
        InputError: another file is there, or no folder.
        LumiError: it cannot be written.
    """
    try:
        if path.exists() and not path.read_bytes()[:200].lstrip().startswith((b"<svg", b"<?xml")):
            raise InputError(
                f"{path} exists and is not an SVG file.", "Name another file with --plot."
            )
        write_whole(path, text)
    except FileNotFoundError as error:
        raise InputError(f"There is no folder {path.parent}.", "Make it first.") from error
    except (OSError, ValueError) as error:
        raise LumiError(f"{path} cannot be written: {error}.", "Name another file.") from error


def _ideal(sizes: list[ScalingSize], size: ScalingSize) -> float:
    """Return the throughput of `size` if GPUs were all that counts, from the first measured."""
    base = next(item for item in sizes if item.measured)
    assert base.speed is not None and base.speed.likely is not None
    return base.speed.likely * size.gpus / base.gpus


def _grid(axes: _Axes, sizes: list[ScalingSize], ranks: str) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for speed in _round_numbers(axes.low, axes.high):
        y = axes.y(speed)
        yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(_LEFT - 8, y + 4, short(speed), anchor="end")
    for size in sizes:
        x = axes.x(size.gpus)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'
        yield _text(x, bottom + 18, f"{size.nodes:,}", anchor="middle")
        yield _text(x, bottom + 34, f"({size.gpus:,})", "quiet", anchor="middle")
    yield _text((_LEFT + right) / 2, bottom + 56, f"nodes ({ranks})", anchor="middle")
    yield _text(_LEFT - 8, _TOP - 12, "samples/s", anchor="end")


def _round_numbers(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 of each power of ten between the bounds; of many powers only some."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, (last - first) // 6)
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    numbers = [step * 10.0**power for power in range(first, last + 1, every) for step in steps]
    return [number for number in numbers if low <= number <= high]


def _lines(axes: _Axes, sizes: list[ScalingSize]) -> Iterator[str]:
    ideal = [(axes.x(size.gpus), axes.y(_ideal(sizes, size))) for size in sizes]
    yield f'<polyline class="ideal" points="{_points(ideal)}"/>'
    likely = [
        (axes.x(size.gpus), axes.y(size.speed.likely))
        for size in sizes
        if size.speed and size.speed.likely is not None
    ]
    yield f'<polyline class="line" points="{_points(likely)}"/>'


def _mark(axes: _Axes, size: ScalingSize) -> Iterator[str]:
    assert size.speed is not None
    x, speed = axes.x(size.gpus), size.speed
    low, high = axes.y(speed.low), axes.y(speed.high)
    yield f'<line class="bar" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
    for y in (low, high):
        yield f'<line class="bar" x1="{x - 5:.1f}" x2="{x + 5:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
    if speed.likely is not None:
        kind = "measured" if size.measured else "predicted"
        yield f'<circle class="{kind}" cx="{x:.1f}" cy="{axes.y(speed.likely):.1f}" r="5"/>'


def _legend() -> Iterator[str]:
    x, y = _LEFT + 20, _TOP - 16
    yield f'<circle class="measured" cx="{x}" cy="{y}" r="5"/>'
    yield _text(x + 12, y + 4, "measured (8 of 10 steps)", "quiet")
    yield f'<circle class="predicted" cx="{x + 196}" cy="{y}" r="5"/>'
    yield _text(x + 208, y + 4, "predicted, with its interval", "quiet")
    yield f'<line class="ideal" x1="{x + 404}" x2="{x + 440}" y1="{y}" y2="{y}"/>'
    yield _text(x + 448, y + 4, "ideal", "quiet")


def _points(places: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{_safe(text)}</text>'


def _safe(text: str) -> str:
    return escape(spell_out(text))
