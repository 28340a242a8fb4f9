"""Edits of a job file's text: one value changes, everything else stays byte for byte. Pure.

PyYAML gives the position of each value. `set_key` replaces the text there and reads the result
again; it refuses an edit that would change anything but the value.
"""

import json
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

import yaml

from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.yaml_document import Document

Value = str | Sequence[str] | Mapping[str, str] | Mapping[str, Sequence[str]]
"""A value of a job file: every scalar is text, as `parse_job` reads it."""
_ORDER = tuple(JobSpec.model_fields)
_PLAIN = re.compile(r"[A-Za-z_/.~+-]*[A-Za-z0-9_][A-Za-z0-9_/.+=@%~ -]*")
UNSEEN = re.compile(
    "[\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ud800-\udfff\ufeff]"
)
"""Characters that YAML, a terminal or a user cannot read; written as \\uXXXX in double quotes."""
_COMMENT = re.compile(r"([ \t]+)(#[^\n]*)?")


def candidates(
    text: str, root: yaml.MappingNode | None, place: tuple[str, ...], value: Value | None
) -> list[str]:
    """Return ways to write `value` at `place`, the one that preserves most of the text first."""
    if root is None:
        end = "" if not text or text.endswith("\n") else "\n"
        return [] if value is None else [f"{text}{end}{_line(place, value)}\n"]
    parent, at = root, list(place)
    while len(at) > 1:
        entry = find(parent, at[0])
        if entry is None or not isinstance(entry[1], yaml.MappingNode) or not entry[1].value:
            break  # the parent keys are missing too
        if value is None and len(entry[1].value) == 1:
            at = at[:1]  # remove the parent with its last key
            break
        parent, at = entry[1], at[1:]
    entry = find(parent, at[0])
    for key in reversed(at[1:]):
        value = None if value is None else {key: value}  # type: ignore[dict-item]  # one level down
    if value is None:
        return [] if entry is None else [_without(text, parent, parent.value.index(entry))]
    if entry is None:
        behind = _place_of_new(parent, at[0], top=parent is root)
        return [_added(text, parent, behind, [_line((at[0],), value)])]
    return [*_items(text, entry, value), _replaced(text, entry, value)]


def find(mapping: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the nodes of a key and its value; None if `mapping` lacks it or is not a mapping."""
    entries = mapping.value if isinstance(mapping, yaml.MappingNode) else []
    return next(((name, node) for name, node in entries if name.value == key), None)


# -- one value


def _replaced(text: str, entry: tuple[yaml.Node, yaml.Node], value: Value) -> str:
    """Return `text` with a whole value replaced, and its comment in the same column."""
    key, node = entry
    start, end = node.start_mark.index, _end(text, node)
    new = _inline(value, getattr(node, "style", None))
    if "\n" in text[key.end_mark.index : start]:  # a list below its key
        start = key.end_mark.index + 1
    gap = "" if start > 0 and text[start - 1] in " \t" else " "
    return _with_comment(text, start, end, gap + new)


def _with_comment(text: str, start: int, end: int, new: str) -> str:
    """Return `text` with `new` from `start` to `end`; a trailing comment keeps its column."""
    behind = _COMMENT.match(text, end)
    if behind is None or not behind[2]:
        return text[:start] + new + text[end:]
    column = len(behind[1]) + (end - start) - len(new)
    blanks = " " * max(1, column) if "\n" not in text[start:end] else behind[1]
    return text[:start] + new + blanks + text[behind.start(2) :]


def _end(text: str, node: yaml.Node) -> int:
    """Return the index of a value's end; a block's own end mark is after the comments below it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(text, last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return len(text[:end].rstrip("\r\n"))
    return end


# -- lists, one item at a time: each may have a comment


def _items(text: str, entry: tuple[yaml.Node, yaml.Node], value: Value) -> list[str]:
    """Return `text` with the first differing items changed, if the value is a list."""
    key, node = entry
    if not isinstance(node, yaml.SequenceNode) or isinstance(value, str | Mapping):
        return []
    items = [item for item in node.value if isinstance(item, yaml.ScalarNode)]
    if not items or len(items) < len(node.value):
        return []
    now, more = [item.value for item in items], len(value) - len(items)
    pairs = enumerate(zip(now, value, strict=False))
    low = next((at for at, (old, new) in pairs if old != new), min(len(now), len(value)))
    if more > 0:
        text = _added(text, node, low, [scalar(str(word)) for word in value[low : low + more]])
    elif more < 0:
        text = _without(text, node, low)
    else:
        item = items[low]
        new = scalar(str(value[low]), item.style)
        text = _with_comment(text, item.start_mark.index, _end(text, item), new)
    if not node.flow_style and not value:
        colon = text.index(":", key.end_mark.index) + 1
        text = f"{text[:colon]} []{text[colon:]}"
    return [text]


# -- added and removed entries: keys with their values, or items


def _entries(text: str, node: yaml.CollectionNode) -> list[tuple[int, int]]:
    """Return the start and end of each entry."""
    pairs = [one if isinstance(one, tuple) else (one, one) for one in node.value]
    return [
        (first.start_mark.index, max(_end(text, last), first.end_mark.index))
        for first, last in pairs
    ]


def _added(text: str, node: yaml.CollectionNode, at: int, words: Sequence[str]) -> str:
    """Return `text` with new entries before the entry `at`, in the style of their neighbours."""
    entries = _entries(text, node)
    if not entries:
        start = node.start_mark.index + 1
        return text[:start] + ", ".join(words) + text[start:]
    start, end = entries[max(0, at - 1)]
    if node.flow_style and at:
        return text[:end] + "".join(f", {word}" for word in words) + text[end:]
    if node.flow_style:
        return text[:start] + "".join(f"{word}, " for word in words) + text[start:]
    line, end = _line_start(text, start), _line_end(text, end)
    indent = text[line:start]  # of an item with its dash
    if indent.strip() and isinstance(node, yaml.MappingNode):  # `--- name: x` and the like
        indent = " " * (start - line)
    new = "\r\n" if text[end - 1 : end + 1] == "\r\n" else "\n"
    if not at:
        return text[:line] + "".join(f"{indent}{word}{new}" for word in words) + text[line:]
    end -= len(new) - 1
    return text[:end] + "".join(f"{new}{indent}{word}" for word in words) + text[end:]


def _without(text: str, node: yaml.CollectionNode, at: int) -> str:
    """Return `text` without an entry and its lines, or, in brackets, its comma."""
    entries = _entries(text, node)
    start, end = entries[at]
    if not node.flow_style:
        return text[: _line_start(text, start)] + text[_line_end(text, end) + 1 :]
    if at + 1 < len(entries):
        following = entries[at + 1][0]
        if "#" in text[end:following]:
            following = text.index(",", end) + 1
        return text[:start] + text[following:]
    if at and "#" not in text[entries[at - 1][1] : start]:
        return text[: entries[at - 1][1]] + text[end:]
    return text[:start] + text[end:].lstrip(", ")


def _place_of_new(mapping: yaml.MappingNode, key: str, *, top: bool) -> int:
    """Return the index of a new key, following the order of the documentation."""
    names = [name.value for name, _ in mapping.value]
    before = _ORDER[: _ORDER.index(key)] if key in _ORDER else _ORDER
    above = (names.index(name) for name in reversed(before) if top and name in names)
    return next(above, len(names) - 1) + 1


# -- how values are written


def _line(place: Sequence[str], value: Value) -> str:
    for key in reversed(place[1:]):
        value = {key: value}  # type: ignore[dict-item]  # one level deeper
    return f"{scalar(place[0])}: {_inline(value)}"


def _inline(value: object, style: str | None = None) -> str:
    if isinstance(value, str):
        return scalar(value, style)
    if isinstance(value, Mapping):
        parts = (f"{scalar(str(key))}: {_inline(item)}" for key, item in value.items())
        return "{" + ", ".join(parts) + "}"
    assert isinstance(value, Sequence)
    return "[" + ", ".join(scalar(str(word)) for word in value) + "]"


def scalar(text: str, style: str | None = None) -> str:
    """Return a text that YAML 1.1 and 1.2 read alike, quoted if it was or must be."""
    simple = _PLAIN.fullmatch(text) and not text.endswith(" ") and not UNSEEN.search(text)
    if simple and style not in ('"', "'") and not _is_other(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _is_other(text: str) -> bool:
    """Return whether YAML 1.1 reads a plain text as another type."""
    resolver = yaml.resolver.Resolver()
    tag = str(resolver.resolve(yaml.ScalarNode, text, (True, False)))  # type: ignore[no-untyped-call]
    number = re.fullmatch(r"0|[1-9][0-9]*|[0-9]+\.[0-9]+", text)
    if not tag.endswith(":str"):
        return not (number or text in ("true", "false"))
    return text[:1] in "-~" and not text.startswith("--")


# -- lines


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


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
    """Return `text` with the value at `place`; InputError if only the user can write it."""
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
        f"lumitui cannot edit `{'.'.join(place)}` as it is written.",
        "Edit it in the YAML view.",
    )


def rename(text: str, place: tuple[str, ...], name: str) -> str:
    """Return `text` with the key at `place` called `name`; nothing else changes.

    Raises:
        InputError: there is no such key, or already one called `name`.
    """
    parent: yaml.Node | None = Document(text, "the job file", plain=True).root
    for key in place[:-1]:
        entry = find(parent, key)
        parent = entry[1] if entry else None
    entry = find(parent, place[-1])
    if entry is None:
        raise InputError(f"The job file has no key `{'.'.join(place)}`.", "Open the file again.")
    if find(parent, name):
        raise InputError(f"The job file already has `{name}:`.", "Remove one of the two keys.")
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
