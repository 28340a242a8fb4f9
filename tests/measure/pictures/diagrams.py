"""`make diagrams`: the small pictures of the documents, in light and in dark.

The masks, the proof, the scaling and the cause are computed or printed by the program; the way from
the laptop to the nodes and the life of a chain are drawn.
"""

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from dataclasses import replace
from html import escape

from lumitui.app.cli.views.show import proof_text
from lumitui.app.cli.views.why_page import cause_text
from lumitui.app.launch.layout import rank_bindings
from lumitui.app.runs import ScalingQuestion, Sites, explain_masks
from lumitui.app.runs.tour.recorded_runs import recorded_runs
from lumitui.remote.site.core_sets import parse_cores
from lumitui.remote.site.sites import BUILT_IN
from tests.support.jobs.binding.binding_reports import EXACT, reports, verdict_on
from tests.support.places import ROOT

PICTURES = ROOT / "docs" / "pictures"
LIGHT = {"bg": "#ffffff", "fg": "#24292f", "dim": "#6e7781", "line": "#d0d7de", "box": "#f6f8fa",
         "good": "#1a7f37", "bad": "#cf222e", "tint": "#0969da"}  # fmt: skip
DARK = {"bg": "#0d1117", "fg": "#e6edf3", "dim": "#8b949e", "line": "#30363d", "box": "#161b22",
        "good": "#3fb950", "bad": "#f85149", "tint": "#58a6ff"}  # fmt: skip
RANKS = ("#0969da", "#8250df", "#bf3989", "#bc4c00", "#9a6700", "#1a7f37", "#1b7c83", "#57606a")
"""A colour of each local rank, which is legible on both grounds."""
LUMI = Sites([BUILT_IN]).load("lumi")


def picture(width: int, height: int, parts: Sequence[str], title: str) -> str:
    """Return an SVG; its classes are the colours, which follow the reader's theme."""

    def rules(colours: dict[str, str]) -> str:
        return "".join(
            f".{name}{{fill:{colour}}}.{name}-s{{stroke:{colour};fill:none}}"
            for name, colour in colours.items()
        )

    style = (
        "text{font:13px 'DejaVu Sans',Helvetica,Arial,sans-serif}"
        ".m{font:13px 'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}"
        f".b{{font-weight:bold}}{rules(LIGHT)}@media(prefers-color-scheme:dark){{{rules(DARK)}}}"
    )
    ground = f'<rect width="{width}" height="{height}" rx="8" class="bg"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" role="img"><title>{escape(title)}'
        f"</title><style>{style}</style>{ground}\n{chr(10).join(parts)}\n</svg>\n"
    )


def words(x: float, y: float, text: str, style: str = "fg", anchor: str = "start") -> str:
    """Return a line of text."""
    place = f'x="{x:g}" y="{y:g}"' + (f' text-anchor="{anchor}"' if anchor != "start" else "")
    return f'<text {place} class="{style}">{escape(text)}</text>'


def box(x: float, y: float, width: float, height: float, style: str, more: str = "") -> str:
    """Return a rectangle."""
    size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {size} class="{style}" {more}/>'


def arrow(x: float, y: float, to: float, text: str, style: str = "tint") -> str:
    """Return a horizontal arrow with words above it."""
    back = -6 if to > x else 6
    head = f"M{to:g} {y:g}l{back} -4v8z"
    return (
        f'<path d="M{x:g} {y:g}H{to + back:g}" class="{style}-s" stroke-width="1.5"/>'
        f'<path d="{head}" class="{style}"/>' + words((x + to) / 2, y - 7, text, "dim", "middle")
    )


def masks() -> str:
    """Draw the cores of each rank: as `bind lumi` plans them, and counted from 0."""
    good = [parse_cores(one.cores) for one in rank_bindings(LUMI.node, LUMI.node.gpus)]
    counted = "mask_cpu:" + ",".join(hex(0xFE << 8 * rank) for rank in range(LUMI.node.gpus))
    tasks = explain_masks(LUMI, counted, tasks=None, starter="srun").tasks
    bad = [parse_cores(task.cores) for task in tasks]
    wrong = [task.task for task in tasks if task.wrong]
    parts = list[str]()
    for left, title, cores, style in (
        (16, "Right: what `lumitui bind lumi` prints", good, "good"),
        (416, f"Wrong: counted from 0; {len(wrong)} of 8 ranks are far away", bad, "bad"),
    ):
        parts.append(words(left, 26, title, f"{style} b"))
        parts += _node(left, 44, cores)
    said = (
        "Each square is a core, each row the cores nearest to one GCD; the grey ones are reserved."
    )
    parts.append(words(16, 258, said, "dim"))
    parts.append(
        words(16, 278, "Local rank i uses GCD i. Its colour shows the cores it gets.", "dim")
    )
    return picture(800, 294, parts, "Right and wrong masks on a LUMI-G node")


def _node(left: int, top: int, cores: Sequence[tuple[int, ...]]) -> Iterator[str]:
    for row, gpu in enumerate(sorted(range(8), key=lambda gpu: min(LUMI.node.cores_of_gpu[gpu]))):
        y = top + row * 24
        near = LUMI.node.cores_of_gpu[gpu]
        yield words(left, y + 14, f"GCD {gpu}")
        for at in range(8):
            core = min(near) - 1 + at
            owner = next((rank for rank, own in enumerate(cores) if core in own), None)
            colour = "" if owner is None else f'style="fill:{RANKS[owner]}"'
            yield box(left + 60 + at * 22, y, 18, 18, "line" if owner is None else "", colour)
        if owner is not None:
            style = "good" if owner == gpu else "bad"
            yield words(
                left + 246,
                y + 14,
                f"rank {owner}" + ("" if owner == gpu else f", uses GCD {owner}"),
                style,
            )


def differs() -> str:
    """Draw the proof of a run two of whose ranks have each other's cores, as `show` prints it."""
    items = reports(EXACT, [0])
    items[0]["cores"], items[1]["cores"] = items[1]["cores"], items[0]["cores"]
    found = verdict_on(items, replace(EXACT, nodes=1))
    text = f"binding: {found.kind}\n{proof_text(found, 98)}"
    return _printed(text, "A proof that differs", _colour_of_proof)


def _colour_of_proof(line: str) -> str:
    if line.startswith("RANK"):
        return "dim"
    return "fg" if line.endswith("ok") else "bad"


def why() -> str:
    """Draw the cause of the recorded failure, as `lumitui why` prints it."""
    with recorded_runs() as runs, chdir(runs.project):
        failed = next(run for run in runs.history.page(50) if run.state.value == "failed")
        found = runs.why(failed.id)
    lines = [f"$ lumitui why {failed.id}", *cause_text(found[0]).splitlines()]
    return _printed(
        "\n".join(lines), "Why a job failed", lambda line: "bad b" if line[:1] == "A" else "fg"
    )


def _printed(text: str, title: str, style: Callable[[str], str]) -> str:
    """Draw lines as a terminal prints them, wrapped; words behind two blanks have their place."""
    cells, parts = 98, list[str]()
    lines = [
        (part, style(line))
        for line in text.splitlines()
        for part in textwrap.wrap(line, cells, subsequent_indent="  ", drop_whitespace=False)
        or [""]
    ]
    for row, (line, colour) in enumerate(lines):
        y = 26 + row * 18
        for found in re.finditer(r"\S+(?: \S+)*", line):
            parts.append(words(16 + found.start() * 7.83, y, found[0], f"{colour} m"))
    return picture(cells * 8 + 16, 38 + 18 * (len(lines) - 1), parts, title)


def path() -> str:
    """Draw the way from the laptop over the login node to the nodes."""
    parts = list[str]()
    for x, title, lines in (
        (16, "Your laptop", ("job.yaml, your code", "lumitui and its TUI", "history: every run")),
        (315, "Login node", ("sshd, sbatch, squeue", "the run's folder", "no daemon")),
        (614, "Nodes of the job", ("job.sh: probe, then", "your program, one", "rank per GPU")),
    ):
        parts += [box(x, 30, 170, 104, "box"), box(x, 30, 170, 104, "line-s", 'rx="4"')]
        parts.append(words(x + 12, 54, title, "fg b"))
        parts += [words(x + 12, 78 + at * 20, line, "dim") for at, line in enumerate(lines)]
    parts += [
        arrow(190, 60, 311, "code, script"), arrow(190, 90, 311, "sbatch, once"),
        arrow(311, 120, 190, "state, log, metrics", "good"),
        arrow(489, 72, 610, "Slurm starts"), arrow(610, 104, 489, "proof, log, results", "good"),
    ]  # fmt: skip
    said = "One SSH connection. While a run is unfinished, one short request per poll;"
    parts.append(words(400, 158, f"{said} your laptop may be off.", "dim", "middle"))
    return picture(800, 174, parts, "From your laptop over the login node to the nodes")


def chain() -> str:
    """Draw the life of a chain: attempts of one job, between them the queue."""
    parts = [words(16, 26, "One run, one job: chain: 4", "fg b")]
    x = 16.0
    for number, (width, end) in enumerate(
        ((190, "saves, exits 85"), (190, "saves, exits 85"), (120, "done, exits 0"))
    ):
        parts += [box(x, 50, width, 34, "tint" if number < 2 else "good", 'rx="4" opacity=".85"')]
        parts.append(words(x + width / 2, 72, f"attempt {number + 1}", "bg b", "middle"))
        parts.append(words(x + width, 104, end, "dim", "end"))
        x += width
        if number < 2:
            parts.append(box(x, 50, 76, 34, "line-s", 'rx="4" stroke-dasharray="4 3"'))
            parts.append(words(x + 38, 72, "in queue", "dim", "middle"))
            x += 76
    said = "Before each time limit the job saves, asks Slurm whether it is still this attempt, and"
    parts.append(words(16, 132, f"{said} requeues itself.", "dim"))
    return picture(800, 148, parts, "A chain: three attempts of one job")


def scaling() -> str:
    """Draw the speed-up of the recorded lineage: measured, predicted, ideal."""
    with recorded_runs() as runs, chdir(runs.project):
        (newest,) = runs.history.page(1)
        study = runs.scaling.of(newest.id, ScalingQuestion((16, 32)))
    sizes = [one for one in study.sizes if one.speed_up and one.nodes <= 32]

    def at(nodes: float, speed: float) -> str:
        return f"{70 + math.log2(nodes) * 120:.0f} {250 - math.log2(speed) * 42:.0f}"

    parts = [words(16, 26, "Speed-up over one node (both axes double)", "fg b")]
    for power in range(6):
        x, y = at(2**power, 2**power).split()
        parts.append(words(float(x), 274, f"{2**power} node{'s' * (power > 0)}", "dim", "middle"))
        parts.append(words(54, float(y) + 4, f"{2**power}x", "dim", "end"))
        parts.append(f'<path d="M70 {y}H680" class="line-s"/>')
    parts.append(f'<path d="M{at(1, 1)}L{at(32, 32)}" class="dim-s" stroke-dasharray="4 4"/>')
    parts.append(words(690, 44, "ideal", "dim"))
    for one in sizes:
        assert one.speed_up
        x, y = at(one.nodes, one.speed_up.likely or one.speed_up.middle).split()
        low, high = at(one.nodes, one.speed_up.low), at(one.nodes, one.speed_up.high)
        colour = "good" if one.measured else "tint"
        parts.append(f'<path d="M{low}L{high}" class="{colour}-s" stroke-width="7" opacity=".4"/>')
        parts.append(f'<circle cx="{x}" cy="{y}" r="5" class="{colour}"/>')
    parts += [
        words(480, 200, "● measured", "good"),
        words(480, 222, "● predicted by Amdahl's law", "tint"),
    ]
    return picture(760, 290, parts, "Speed-up over the number of nodes: measured, predicted, ideal")


DRAWN: dict[str, Callable[[], str]] = {
    "masks": masks, "differs": differs, "path": path, "chain": chain, "scaling": scaling, "why": why
}  # fmt: skip


def main() -> None:
    """Draw all of them."""
    for name, draw in DRAWN.items():
        (PICTURES / f"{name}.svg").write_text(draw(), encoding="utf-8")
    print(f"drew {', '.join(DRAWN)} in {PICTURES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
