"""tests/golden/systems.md: the documents' job scripts, as the last `make systems` left each.

`python -m tests.support.systems.page` writes its tables, from what the runs kept in build/systems,
and the summary of docs/systems.md. Edit what is before the first table of either yourself.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from tests.support.places import ROOT
from tests.support.systems.outcome import Outcome, kept
from tests.support.systems.rows import Row, table

PAGE = ROOT / "tests" / "golden" / "systems.md"
SUMMARY = ROOT / "docs" / "systems.md"
_TABLE = "\n| scripts of | for |"


def page(before: str) -> str:
    """Return the page `before`, with its tables written anew.

    A row that was not run keeps its line, as long as its job is the same.
    """
    head = before[: before.index("\n## ")].rstrip("\n")
    return "\n".join([head, *_sections(_lines_of(before))]) + "\n"


def summary(before: str, full: str) -> str:
    """Return docs/systems.md: how many scripts of each group in the `full` page had which proof."""
    lines = [before.partition(_TABLE)[0], "| scripts of | for | scripts | largest | proof |"]
    lines.append("|---|---|---|---|---|")
    proofs = {name: line.split(" | ")[3] for name, line in _lines_of(full).items()}
    for name, group in table().groups.items():
        rows = [row for row in table().rows if row.group == name]
        counted = Counter(proofs[row.name] for row in rows)
        shown = ", ".join(f"{count} {proof}" for proof, count in counted.most_common())
        largest = max(rows, key=lambda row: row.nodes * row.ranks)
        size = f"{largest.nodes} x {largest.ranks}"
        lines.append(f"| {group.source} | `{group.site}` | {len(rows)} | {size} | {shown} |")
    return "\n".join(lines) + "\n"


def _sections(earlier: Mapping[str, str]) -> Iterator[str]:
    groups = table().groups
    for name, group in groups.items():
        rows = [row for row in table().rows if row.group == name]
        yield f"\n## {name}\n"
        note = f" {group.note[0].upper()}{group.note[1:]}." if group.note else ""
        yield f"For `{group.site}`. Source: {group.source}.{note}\n"
        yield "| script | launched as | nodes x ranks | proof | seconds |"
        yield "|---|---|---|---|---|"
        yield from (_line(row, earlier.get(row.name, "")) for row in rows)


def _line(row: Row, earlier: str) -> str:
    outcome = kept(row.name)
    script = f"**{row.script}**" if row.ci else row.script
    shape = f"{row.nodes} x {row.ranks}"
    launched = f"{row.job['launcher']}, {row.job.get('script') or row.job.get('strategy', 'ddp')}"
    if outcome:
        cells = [_proof(outcome, row.nodes * row.ranks), _seconds(outcome)]
    elif earlier.startswith(f"| {script} | {launched} | {shape} | "):
        return earlier
    else:
        cells = ["not run", ""]
    return f"| {' | '.join([script, launched, shape, *cells])} |"


def _proof(outcome: Outcome, planned: int) -> str:
    """Return the verdict, with the ranks that ran and were measured where these are not all."""
    kind = outcome.proof.partition(":")[0]
    found = {outcome.ranks, outcome.measured}
    more = f", {outcome.ranks} ran, {outcome.measured} measured" if found != {planned} else ""
    return f"{kind}{more}"


def _seconds(outcome: Outcome) -> str:
    if outcome.same_as:
        group, _, script = outcome.same_as.partition("/")
        own = outcome.row.partition("/")[0]
        return f"as {script}" if group == own else f"as {outcome.same_as}"
    return f"{outcome.seconds:.0f}"


def scripts_of(text: str) -> list[str]:
    """Return the names of the rows that a page has: group and script."""
    return list(_lines_of(text))


def _lines_of(text: str) -> dict[str, str]:
    """Return the lines of a page's rows by their names."""
    lines: dict[str, str] = {}
    group = ""
    for line in text.splitlines():
        if found := re.match(r"^## (\S+)$", line):
            group = found[1]
        elif group and (found := re.match(r"^\| \**(.+?)\** \| \w+, ", line)):
            lines[f"{group}/{found[1]}"] = line
    return lines


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    full = PAGE.read_text(encoding="utf-8")
    SUMMARY.write_text(summary(SUMMARY.read_text(encoding="utf-8"), full), encoding="utf-8")
    missing = PAGE.read_text(encoding="utf-8").count("| not run |  |")
    print(f"{PAGE.relative_to(ROOT)}: {len(table().rows)} rows, {missing} of them not run.")
