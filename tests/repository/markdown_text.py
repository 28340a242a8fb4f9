"""Texts of the program as Markdown."""

import re

_MARKUP = re.compile(r"\*|<(?=[a-zA-Z/!])|(?<!\w)_|_(?!\w)")


def plain_markdown(text: str) -> str:
    """Return a text on one line, with no character that Markdown would take for markup.

    Between backticks nothing is markup.
    """
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(
        part if part.startswith("`") else _MARKUP.sub(r"\\\g<0>", part) for part in parts
    )
