"""How a value is written where PyYAML marks it: the texts that `edit` then checks. Pure."""

import json
import re
from collections.abc import Mapping, Sequence

import yaml

from lumitui.app.job.spec import JobSpec

Value = str | Sequence[str] | Mapping[str, str] | Mapping[str, Sequence[str]]
"""What a key of a job file holds: every scalar is text here, as `parse_job` reads it."""
_ORDER = tuple(JobSpec.model_fields)
_PLAIN = re.compile(r"[A-Za-z_/.~+-]*[A-Za-z0-9_][A-Za-z0-9_/.+=@%~ -]*")
UNSEEN = re.compile(
    "[\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ud800-\udfff\ufeff]"
)
"""Written as \\uXXXX in double quotes: what YAML, a terminal or a person cannot read."""
_COMMENT = re.compile(r"([ \t]+)(#[^\n]*)?")


def candidates(
    text: str, root: yaml.MappingNode | None, place: tuple[str, ...], value: Value | None
) -> list[str]:
    """Return ways to write it, the one that keeps most first."""
    if root is None:
        end = "" if not text or text.endswith("\n") else "\n"
        return [] if value is None else [f"{text}{end}{_line(place, value)}\n"]
    parent, at = root, list(place)
    while len(at) > 1:
        found = find(parent, at[0])
        if found is None or not isinstance(found[1], yaml.MappingNode) or not found[1].value:
            break  # the keys above are made too
        if value is None and len(found[1].value) == 1:
            at = at[:1]  # the last key below goes with its heading
            break
        parent, at = found[1], at[1:]
    found = find(parent, at[0])
    for key in reversed(at[1:]):
        value = None if value is None else {key: value}  # type: ignore[dict-item]  # deeper
    if value is None:
        return [] if found is None else _without(text, parent, found)
    if found is None:
        return [_inserted(text, parent, at[0], value, top=parent is root)]
    return [*_items(text, found, value), _replaced(text, found, value)]


def find(mapping: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the nodes of a key and its value; None: `mapping` has no such key, or is none."""
    entries = mapping.value if isinstance(mapping, yaml.MappingNode) else []
    return next(((name, node) for name, node in entries if name.value == key), None)


# -- one value


def _replaced(text: str, found: tuple[yaml.Node, yaml.Node], value: Value) -> str:
    """Return `text` with a whole value written anew, its comment in the same column."""
    key, node = found
    start, end = node.start_mark.index, _end(text, node)
    new = _inline(value, getattr(node, "style", None))
    if "\n" in text[key.end_mark.index : start]:  # a list below its key
        start = key.end_mark.index + 1
    gap = "" if start > 0 and text[start - 1] in " \t" else " "
    return _with_comment(text, start, end, gap + new)


def _with_comment(text: str, start: int, end: int, new: str) -> str:
    """Return `text` with `new` from `start` to `end`; a comment behind keeps its column."""
    behind = _COMMENT.match(text, end)
    if behind is None or not behind[2]:
        return text[:start] + new + text[end:]
    column = len(behind[1]) + (end - start) - len(new)
    blanks = " " * max(1, column) if "\n" not in text[start:end] else behind[1]
    return text[:start] + new + blanks + text[behind.start(2) :]


def _end(text: str, node: yaml.Node) -> int:
    """Return where a value ends. A block's own mark is behind the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(text, last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return len(text[:end].rstrip("\r\n"))
    return end


# -- lists, an item at a time: each item may have its comment


def _items(text: str, found: tuple[yaml.Node, yaml.Node], value: Value) -> list[str]:
    """Return `text` with only the items changed that differ, where the value is a list."""
    key, node = found
    if not isinstance(node, yaml.SequenceNode) or isinstance(value, str | Mapping):
        return []
    items = [item for item in node.value if isinstance(item, yaml.ScalarNode)]
    if not items or len(items) < len(node.value):
        return []
    block = not node.flow_style
    now, more = [item.value for item in items], len(value) - len(items)
    pairs = enumerate(zip(now, value, strict=False))
    low = next((at for at, (old, new) in pairs if old != new), min(len(now), len(value)))
    if more > 0:
        added = [scalar(str(word)) for word in value[low : low + more]]
        text = _add_items(text, items, low, added, block=block)
    elif more < 0:
        text = _drop_item(text, node, low)
    else:
        item = items[low]
        new = scalar(str(value[low]), item.style)
        text = _with_comment(text, item.start_mark.index, _end(text, item), new)
    if block and not value:
        colon = text.index(":", key.end_mark.index) + 1
        text = f"{text[:colon]} []{text[colon:]}"
    return [text]


def _add_items(
    text: str, items: Sequence[yaml.Node], at: int, added: Sequence[str], *, block: bool
) -> str:
    before = items[at - 1] if at else None
    if block and before is None:
        start = _line_start(text, items[0].start_mark.index)
        dash = text[start : items[0].start_mark.index]
        return text[:start] + "".join(f"{dash}{word}\n" for word in added) + text[start:]
    if block:
        assert before is not None
        start = _line_start(text, before.start_mark.index)
        dash = text[start : before.start_mark.index]
        end = _line_end(text, _end(text, before))
        lines = "".join(f"\n{dash}{word}" for word in added)
        return text[:end] + lines + text[end:]
    if before is None:
        start = items[0].start_mark.index
        return text[:start] + "".join(f"{word}, " for word in added) + text[start:]
    end = _end(text, before)
    return text[:end] + "".join(f", {word}" for word in added) + text[end:]


def _drop_item(text: str, node: yaml.SequenceNode, at: int) -> str:
    item = node.value[at]
    if not node.flow_style:
        return _without_lines(text, item.start_mark.index, _end(text, item))
    return _without_entry(text, node, at, item.start_mark.index, _end(text, item))


# -- keys that come and go


def _without(text: str, parent: yaml.MappingNode, found: tuple[yaml.Node, yaml.Node]) -> list[str]:
    key, node = found
    end = max(_end(text, node), key.end_mark.index)
    if parent.flow_style:
        at = [name for name, _ in parent.value].index(key)
        return [_without_entry(text, parent, at, key.start_mark.index, end)]
    return [_without_lines(text, key.start_mark.index, end)]


def _without_lines(text: str, start: int, end: int) -> str:
    last = _line_end(text, end)
    return text[: _line_start(text, start)] + text[last + 1 :]


def _without_entry(text: str, node: yaml.Node, at: int, start: int, end: int) -> str:
    """Return `text` without one entry of a list in brackets, and without its comma."""
    entries = node.value
    if at + 1 < len(entries):
        following = entries[at + 1]
        head = following[0] if isinstance(following, tuple) else following
        between = text[end : head.start_mark.index]
        if "#" not in between:
            return text[:start] + text[head.start_mark.index :]
        comma = text.index(",", end)
        return text[:start] + text[comma + 1 :]
    if at:
        before = entries[at - 1]
        tail = before[1] if isinstance(before, tuple) else before
        if "#" not in text[_end(text, tail) : start]:
            return text[: _end(text, tail)] + text[end:]
    return text[:start] + text[end:].lstrip(", ")


def _inserted(text: str, parent: yaml.MappingNode, key: str, value: Value, *, top: bool) -> str:
    """Return `text` with a new key: behind the one that comes before it in the documentation."""
    entries = parent.value
    written = _line((key,), value)
    if parent.flow_style or not entries:
        if not entries:
            at = parent.start_mark.index + 1
            return text[:at] + written + text[at:]
        end = _end(text, entries[-1][1])
        return text[:end] + f", {written}" + text[end:]
    last = _neighbour(entries, key) if top else entries[-1]
    start = _line_start(text, last[0].start_mark.index)
    indent = text[start : last[0].start_mark.index]
    if indent.strip():  # `--- name: x` and the like
        indent = " " * last[0].start_mark.column
    end = _line_end(text, max(_end(text, last[1]), last[0].end_mark.index))
    new = "\r\n" if text[end - 1 : end + 1] == "\r\n" else "\n"
    if new == "\r\n":
        end -= 1
    return f"{text[:end]}{new}{indent}{written}{text[end:]}"


def _neighbour(
    entries: Sequence[tuple[yaml.Node, yaml.Node]], key: str
) -> tuple[yaml.Node, yaml.Node]:
    names = {name.value: (name, node) for name, node in entries}
    before = _ORDER[: _ORDER.index(key)] if key in _ORDER else _ORDER
    return next((names[name] for name in reversed(before) if name in names), entries[-1])


# -- how values are written


def _line(place: Sequence[str], value: Value) -> str:
    for key in reversed(place[1:]):
        value = {key: value}  # type: ignore[dict-item]  # one level deeper
    return f"{scalar(place[0])}: {_inline(value)}"


def _inline(value: object, style: str | None = None) -> str:
    """Return a value on one line."""
    if isinstance(value, str):
        return scalar(value, style)
    if isinstance(value, Mapping):
        parts = (f"{scalar(str(key))}: {_inline(item)}" for key, item in value.items())
        return "{" + ", ".join(parts) + "}"
    assert isinstance(value, Sequence)
    return "[" + ", ".join(scalar(str(word)) for word in value) + "]"


def scalar(text: str, style: str | None = None) -> str:
    """Return a text as YAML 1.1 and 1.2 both read it; in quotes where it was or must be."""
    simple = _PLAIN.fullmatch(text) and not text.endswith(" ") and not UNSEEN.search(text)
    if simple and style not in ('"', "'") and not _is_other(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _is_other(text: str) -> bool:
    """Return whether a reader of YAML 1.1 takes a plain text for something else."""
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
