"""The pane with the proof of binding: the cores and GPUs measured for each rank."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType

from lumitui.app.explain import run_facts, words
from lumitui.app.explain.proof.binding_proof import Verdict
from lumitui.app.explain.proof.rank_proof import RankProof
from lumitui.app.runs import LumiError, Run, Runs, gpu_word, log_line, measured_map, node_map_lines
from lumitui.app.tui.panes.compose.node_map_pane import map_line
from lumitui.app.tui.widgets.styled import GAP, VERDICTS, plain, rank_colour
from lumitui.app.tui.widgets.tables.row_list import ListRow, RowList, TitledRows

_MOST_RANKS = 1024  # maximum ranks of a drawn node
PCI = "GPU: the number of the one that a rank uses. PCI: the address of the same GPU."
_NODE = Binding.Group("Node", compact=True)


class ProofPane(RowList):
    """The verdict, a cell for each node, the cores of one node, and a row for each rank."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose(-1)", "Previous node", id="proof.left", group=_NODE,
                tooltip="Draw the previous node"),
        Binding("right", "choose(1)", "Next node", id="proof.right", group=_NODE,
                tooltip="Draw the next node; nodes that differ come first"),
        Binding("enter", "open", "Ranks", id="proof.open",
                tooltip="Show the ranks of all nodes, or only of this one"),
    ]  # fmt: skip

    def __init__(self, runs: Runs) -> None:
        super().__init__(id="proof")
        self._runs = runs
        self._shown: Verdict | None = None
        self._site = ""
        self._hosts: dict[str, list[RankProof]] = {}
        """The ranks of each node, nodes that differ first."""
        self._at, self._turned = 0, False
        """The drawn node, and whether the user asked for the other choice of ranks."""

    def draw(self, run: Run) -> None:
        """Show the probe's current result for `run`, if it has changed."""
        found = self._runs.proof(run)
        if found is not self._shown:
            self._shown, self._site = found, run.site
            self._hosts = nodes_of(found)
            self._show()
            self.refresh_bindings()

    def on_resize(self, event: events.Resize) -> None:
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the choice of a node if there are two."""
        return action not in ("choose", "open") or len(self._hosts) > 1

    def action_choose(self, step: int) -> None:
        self._at = (self._at + step) % len(self._hosts)
        self._show()

    def action_open(self) -> None:
        """Show the ranks of all nodes, or only those of the drawn node."""
        self._turned = not self._turned
        self._show()

    def _show(self) -> None:
        found = self._shown
        width, height = self.scrollable_content_region.size
        if found is None or not width:
            return
        lines, shown = proof_lines(found), found
        if len(self._hosts) > 1:
            lines.append(node_cells(self._hosts, self._at, width, max(1, height // 5)))
        if self._hosts:
            name = list(self._hosts)[self._at % len(self._hosts)]
            lines += self._map(name, width)
            # If all is as planned, the other nodes look the same.
            if (found.kind == "proved") != self._turned:
                shown = replace(found, rows=tuple(self._hosts[name]))
        self.show(lines, rank_table(shown, width))

    def _map(self, name: str, width: int) -> list[Text]:
        """Return the drawn node; empty if the site's nodes or cores are unknown."""
        ranks = [row for row in self._hosts[name] if 0 <= row.local_rank < _MOST_RANKS]
        cores = {row.local_rank: row.found for row in ranks if row.found}
        try:
            site = self._runs.sites.load(self._site)
            drawn = measured_map(site, name, cores)
        except (LumiError, ValueError):  # the probe's output may be invalid
            return []
        wrong = {row.local_rank for row in ranks if not row.ok}
        lines = [map_line(line, wrong) for line in node_map_lines(drawn, width, gpu_word(site))]
        title, legend = lines[:2]
        return [Text(), Text("  ").join((title, legend)), *lines[3:-1]] if cores else []


def nodes_of(found: Verdict) -> dict[str, list[RankProof]]:
    """Return the ranks of each node that reported, nodes that differ first."""
    nodes: dict[str, list[RankProof]] = {}
    for row in sorted(found.rows, key=lambda row: row.rank):
        nodes.setdefault(row.host or "?", []).append(row)
    return dict(sorted(nodes.items(), key=lambda node: all(row.ok for row in node[1])))


def node_cells(nodes: Mapping[str, Sequence[RankProof]], at: int, width: int, most: int) -> Text:
    """Return a cell for each node in at most `most` lines; a red cross marks a difference."""
    first = max(0, at - width * most + 1)
    cells = Text()
    for number, ranks in enumerate(list(nodes.values())[first : first + width * most], first):
        right = all(row.ok for row in ranks)
        style = f"{'green' if right else 'red'}{' bold underline' if number == at else ' dim'}"
        cells.append("■" if right else "✖", style)
    wrong = sum(not all(row.ok for row in ranks) for ranks in nodes.values())
    differ = f"{wrong} differ" if wrong else "all as planned"
    return cells.append(f"  {words.count(len(nodes), 'node')}, {differ}", "dim")


def proof_lines(found: Verdict) -> list[Text]:
    """Return the verdict, the differences and the preflight's findings, one line each."""
    different = run_facts.differences(found)
    style = "bold red" if found.preflight and found.preflight.state == "bad" else ""
    measured = [plain(line, style) for line in run_facts.preflight(found)]
    verdict = Text.assemble((found.kind, VERDICTS[found.kind]), plain(f"  {found.sentence}"))
    key = [Text(PCI, "dim")] if any(row.device for row in found.rows) else []
    return [verdict, *(plain(line, "bold red") for line in different), *measured, *key]


def rank_table(found: Verdict, width: int = 0) -> TitledRows | None:
    """Return a row for each rank that reported; None if none did."""
    if not found.rows:
        return None
    table = run_facts.proof_table(found)
    titles, safe = table.titles, cache(log_line)  # thousands of ranks share a few different cells
    found_at, last = titles.index("found"), len(titles) - 1
    # If all ranks have the planned cores and both columns do not fit, one is enough.
    wide = TitledRows(titles, [ListRow(row.cells, ()) for row in table.rows]).widths
    whole = not all(row.ok for row in found.rows) or sum(wide) + GAP * (len(wide) - 1) <= width
    kept = [at for at, title in enumerate(titles) if title != "planned" or whole]
    wrong = {found_at: "bold red", last: "bold red"}
    as_planned = VERDICTS["unbound"] if found.kind == "unbound" else "dim green"
    right = dict.fromkeys(range(last), "dim") | {last: as_planned}
    local = titles.index("local") if "local" in titles else None
    rows = []
    for row in table.rows:
        styles = right if row.ok else wrong
        if row.ok and local is not None:
            styles = right | {found_at: rank_colour(int(row.cells[local]))}
        cells = tuple(safe(row.cells[at]) for at in kept)
        rows.append(ListRow(cells, tuple((to, styles.get(at, "")) for to, at in enumerate(kept))))
    shown = tuple(titles[at] for at in kept)
    numbers = frozenset(at for at, title in enumerate(shown) if title in ("rank", "local"))
    return TitledRows(shown, rows, numbers, is_folded=True)
