"""Texts of a job file that name staged items, like `$STAGE_DATA`, as shell words. Pure."""

import re
from collections.abc import Collection, Iterator

from lumitui.remote.site.shell_text import quote

VARIABLE = re.compile(r"\$(?:\{STAGE_([A-Z0-9_]+)\}|STAGE_([A-Z0-9_]+))")


def word(text: str, names: Collection[str]) -> str:
    """Return `text` as one shell word, in which only `$STAGE_NAME` of the `names` expands."""
    parts, at = list[str](), 0
    for match in VARIABLE.finditer(text):
        name = match[1] or match[2]
        if name in names:
            parts += [quote(text[at : match.start()])] if match.start() > at else []
            parts.append(f'"$STAGE_{name}"')
            at = match.end()
    if not parts or at < len(text):
        parts.append(quote(text[at:]))
    return "".join(parts)


def named_in(text: str) -> Iterator[str]:
    """Yield the names of the staged items in `text`."""
    for match in VARIABLE.finditer(text):
        yield match[1] or match[2]


def link_target(link: str, name: str) -> str:
    """Return the target of a `link` below the code: the relative path to the staged `name`."""
    return "../" * (link.strip("/").count("/") + 1) + f"stage/{name}"
