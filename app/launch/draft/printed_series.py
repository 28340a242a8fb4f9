"""The numbers that a program prints, for which `metrics:` has no pattern yet. Pure."""

import re
from collections.abc import Iterator

from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key

_VALUE = r"(?:\{[^{}]*\}|%[-+0-9.]*[defg])"
_NAME = r"([\w/]*(?:loss|acc(?:uracy)?|ppl|perplexity))"
_NAMED = re.compile(rf"{_NAME}[ :=]+{_VALUE}|print\([^\n]*[\"']{_NAME}[ :=]*[\"'],", re.IGNORECASE)
_UNIT = r"((?:samples|images|examples|sequences|tokens)/s)"
_SPEED = re.compile(rf"{_VALUE} ?{_UNIT}(?![ :=]+{_VALUE})")
_SPEED_AFTER = re.compile(rf"{_UNIT}[ :=]+{_VALUE}")


def undrawn_series(program: str, metrics: str) -> Iterator[Finding]:
    """Yield a note on the first series that a program's text prints, with a pattern as its fix.

    `metrics` is the value of that key. A program that writes metrics.jsonl needs none.
    """
    if "metrics.jsonl" in program or "lumitui_run" in program:
        return
    found = [first or second for first, second in _NAMED.findall(program)]
    series = {word: rf"\b{word}[ :=]+([-+0-9.eE]+)" for word in found}
    series |= {word: f"([0-9.,]+) ?{word}" for word in _SPEED.findall(program)}
    series |= {word: f"{word}[ :=]+([0-9.,]+)" for word in _SPEED_AFTER.findall(program)}
    word = next((word for word in series if word.lower() not in metrics.lower()), "")
    if word:
        name = re.sub(r"/s$", "_per_s", word.lower()).replace("/", "_")
        message = f"The script prints {word}, which lumitui can draw from the log."
        fix = Fix(f"draw {name}", at_key(f"metrics.{name}"), series[word])
        yield Finding("", "note", message, at=at_key("metrics"), fix=fix)
