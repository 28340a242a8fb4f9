"""A job file made from a script as text: its keys, and what is not in it as comments."""

import textwrap
from collections.abc import Iterator, Sequence

import yaml

from lumitui.app.adopt.notes import Said
from lumitui.app.adopt.report import Report

_WIDTH = 96


def text_of(report: Report, script: str) -> str:
    """Return the job file; `script` is the name of what it was made from."""
    lines = [f"# Made from {script} by `lumitui import`."]
    if report.lost:
        lines.append("# Not carried over; look at each:")
        lines += _listed(report.lost)
    if report.changed:
        lines.append("# Not as it was:")
        lines += _listed(report.changed)
    body = yaml.safe_dump(
        dict(report.made.keys), sort_keys=False, allow_unicode=True, width=_WIDTH,
        default_flow_style=None,
    )  # fmt: skip
    lines += ["", body.rstrip("\n")]
    if report.derived:
        lines += ["", "# Left out, since lumitui works it out:"]
        lines += _listed(report.derived)
    return "\n".join(lines) + "\n"


def _listed(items: Sequence[Said]) -> Iterator[str]:
    """Yield the parts by their reasons; one of several lines stands as it was."""
    by_reason: dict[str, list[str]] = {}
    for item in items:
        by_reason.setdefault(item.words, []).append(item.what)
    for words, parts in by_reason.items():
        several = len(parts) > 1 or "\n" in parts[0].strip()
        if not several:
            yield from _wrapped(f"{parts[0].strip()}: {words}", "#   ")
            continue
        yield from _wrapped(f"{words}:", "#   ")
        for part in parts:
            for line in part.strip("\n").split("\n"):
                yield f"#     {line}".rstrip()


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()), _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
