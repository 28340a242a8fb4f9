"""A job file made from a script as text: its keys, and what is not in it as comments."""

import textwrap
from collections.abc import Iterator, Sequence

import yaml

from lumitui.app.adopt.adopt import Adoption
from lumitui.app.adopt.notes import Said

_WIDTH = 96


def text_of(adoption: Adoption, script: str) -> str:
    """Return the job file; `script` is the name of what it was made from."""
    lines = [f"# Made from {script} by `lumitui import`."]
    if adoption.lost:
        lines.append("# Not carried over; look at each:")
        lines += _listed(adoption.lost)
    body = yaml.safe_dump(
        dict(adoption.keys), sort_keys=False, allow_unicode=True, width=_WIDTH,
        default_flow_style=None,
    )  # fmt: skip
    lines += ["", body.rstrip("\n")]
    if adoption.derived:
        lines += ["", "# Left out, since lumitui works it out:"]
        lines += _listed(adoption.derived)
    return "\n".join(lines) + "\n"


def _listed(items: Sequence[Said]) -> Iterator[str]:
    for item in items:
        what = " ".join(item.what.split())
        yield from textwrap.wrap(
            f"{what}: {item.words}", _WIDTH, initial_indent="#   ", subsequent_indent="#     "
        )
