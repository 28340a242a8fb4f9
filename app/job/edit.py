"""Edits of a job file's text: one value changes, everything else stays byte for byte. Pure.

PyYAML gives the position of each value. `set_key` replaces the text there and reads the result
again; it refuses an edit that would change anything but the value.
"""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

import yaml

from lumitui.app.job.yaml_marks import Value, candidates, find, scalar
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.yaml_document import Document

__all__ = ["Value", "place_of_key", "rename", "set_key"]


def set_key(text: str, place: tuple[str, ...], value: Value | None) -> str:
    """Return `text` with the value at `place` (`("nodes",)`, `("env", "X")`); None removes it.

    Comments, order and all other lines stay as they are.

    Raises:
        InputError: the text is not a YAML mapping, or the value is written in a form that only the
            user can edit.
    """
    before = Document(text, "the job file", plain=True)
    result = _with(before.data, place, value)
    if result == before.data:
        return text
    if isinstance(value, Mapping) and (inner := _inner(before.data, place)) and value:
        # One key at a time: each may have a comment.
        steps: list[tuple[str, Value | None]] = list(value.items())
        steps += [(name, None) for name in inner if name not in value]
        for name, item in steps:
            text = set_key(text, (*place, name), item)
        return text
    for step in _steps(_at(before.data, place), value)[:-1]:
        # Steps are not computed again: with equal items, that might never end.
        text = _written(text, place, step)
    return _written(text, place, value)


def _written(text: str, place: tuple[str, ...], value: Value | None) -> str:
    """Return `text` with the value at `place` written so that most of the text stays.

    Raises:
        InputError: only the user can edit it.
    """
    before = Document(text, "the job file", plain=True)
    result = _with(before.data, place, value)
    for candidate in candidates(text, before.root, place, value):
        try:
            data = Document(candidate, "the job file", plain=True).data
        except InputError:
            continue
        if data == result:
            return candidate
    raise InputError(
        f"lumitui cannot edit `{'.'.join(place)}` in the form in which it is written.",
        "Edit it in the YAML view.",
    )


def rename(text: str, place: tuple[str, ...], name: str) -> str:
    """Return `text` with the key at `place` called `name`; nothing else changes.

    Raises:
        InputError: there is no such key.
    """
    parent: yaml.Node | None = Document(text, "the job file", plain=True).root
    for key in place[:-1]:
        entry = find(parent, key)
        parent = entry[1] if entry else None
    entry = find(parent, place[-1])
    if entry is None:
        raise InputError(f"The job file has no key `{'.'.join(place)}`.", "Open the file again.")
    key_node = entry[0]
    return text[: key_node.start_mark.index] + scalar(name) + text[key_node.end_mark.index :]


def place_of_key(field: str) -> tuple[str, ...]:
    """Return the keys of a field like `container.image`; after `env.`, dots are part of a name."""
    return tuple(field.split(".", 1 if field.startswith(("env.", "grid.", "links.")) else -1))


def _with(data: Mapping[str, object], place: tuple[str, ...], value: Value | None) -> object:
    """Return `data` with `value` at `place`, as YAML would read it back."""
    key, below = place[0], place[1:]
    inner = data.get(key)
    if below:
        inside = _with(inner if isinstance(inner, Mapping) else {}, below, value)
        new: object = inside or None
    else:
        new = _read_back(value)
    if new is None:
        return {name: item for name, item in data.items() if name != key}
    return {name: new if name == key else item for name, item in data.items()} | {key: new}


def _at(data: object, place: tuple[str, ...]) -> object:
    for key in place:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def _inner(data: object, place: tuple[str, ...]) -> Mapping[str, object] | None:
    inner = _at(data, place)
    return inner if isinstance(inner, Mapping) else None


def _steps(before: object, value: object) -> list[list[str]]:
    """Return the steps from one list of words to another, item by item; [] if not two lists."""
    if not isinstance(before, list) or not isinstance(value, list | tuple):
        return []
    now, steps = list(before), list[list[str]]()
    matcher = SequenceMatcher(a=now, b=list(value), autojunk=False)
    for kind, low, high, first, last in reversed(matcher.get_opcodes()):
        both = min(high - low, last - first)
        if kind == "equal":
            continue
        if last - first > both:
            now = now[: low + both] + list(value[first + both : last]) + now[low + both :]
            steps.append(now)
        for at in range(high - 1, low + both - 1, -1):
            now = now[:at] + now[at + 1 :]
            steps.append(now)
        for at in range(both - 1, -1, -1):
            now = [*now[: low + at], value[first + at], *now[low + at + 1 :]]
            steps.append(now)
    return steps


def _read_back(value: object) -> object:
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {name: _read_back(item) for name, item in value.items()}
    assert isinstance(value, Sequence)
    return [_read_back(item) for item in value]
