"""Baselines: findings that a project has accepted, so that only new ones count."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256

from lumitui.app.knowledge.finding_text import CheckedScript
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Finding

_HEAD = "# Accepted findings, which `lumitui lint --baseline` leaves out: rule, level, hash, path\n"
_DIGITS = 16


def baseline_text(checked: tuple[CheckedScript, ...], file: str) -> str:
    """Return the baseline of these findings, to be written to `file`.

    An entry has the hash of the line's text instead of its number, so that a moved line is known.
    """
    entries = (entry for one in checked for entry, _item in _entries(one, file))
    return _HEAD + "".join(f"{entry}\n" for entry in sorted(entries))


def is_baseline(text: str) -> bool:
    """Return whether `text` was written by `baseline_text`."""
    return text.startswith(_HEAD)


def without_baseline(
    checked: tuple[CheckedScript, ...], text: str, file: str
) -> tuple[CheckedScript, ...]:
    """Return the scripts with only the findings that a baseline, read from `file`, lacks.

    Raises:
        InputError: the text is not a baseline.
    """
    if not is_baseline(text):
        raise InputError(f"{file} is not a baseline.", "Write one with --write-baseline.")
    known = Counter(text.splitlines())
    return tuple(replace(one, findings=tuple(_new(one, file, known))) for one in checked)


def _new(one: CheckedScript, file: str, known: Counter[str]) -> Iterator[Finding]:
    for entry, item in _entries(one, file):
        known[entry] -= 1  # a copy of an accepted line is new
        if known[entry] < 0:
            yield item


def _entries(one: CheckedScript, file: str) -> Iterator[tuple[str, Finding]]:
    for item in one.findings:
        path = one.path_of(item.at)
        path = path if path == "-" else os.path.relpath(path, os.path.dirname(file) or ".")
        line = " ".join((one.line_of(item.at) or "").split())
        digest = sha256(line.encode(errors="surrogateescape")).hexdigest()[:_DIGITS]
        yield f"{item.rule} {item.severity} {digest} {path!r}", item
