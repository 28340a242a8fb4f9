"""The user's keys: `keys:` in the settings file, checked against the bindings."""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import Keys, key_to_character
from textual.screen import ModalScreen

from lumitui.app.runs import SETTINGS_BLOCKS, InputError, meant, read_document

_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_NAMES = {key.value for key in Keys}


@dataclass(frozen=True)
class Keymap:
    """Keys by binding id, and the errors of skipped lines."""

    keys: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Line:
    """Keys that a settings file sets for a binding."""

    keys: str
    file: str
    line: int


def read_keymap(*files: Path) -> Keymap:
    """Read `keys:` of settings files, the highest priority first; skip invalid lines."""
    wanted: dict[str, _Line] = {}
    warnings: list[str] = []
    for file in files:
        try:
            document = read_document(file, plain=True)
        except InputError as error:
            warnings.append(f"{error.message} {error.hint}")
            continue
        for name in document.data.keys() - set(SETTINGS_BLOCKS):
            line = document.line((name,))
            near = meant(name, SETTINGS_BLOCKS) or f"It may contain {', '.join(SETTINGS_BLOCKS)}."
            warnings.append(f"{file}, line {line}: {name} is not a setting. {near.rstrip()}")
        block = document.data.get("keys")
        if block is not None and not isinstance(block, dict):
            line = document.line(("keys",))
            words = "`keys` is not a mapping. Write lines like `run.cancel: x` below it."
            warnings.append(f"{file}, line {line}: {words}")
            continue
        for name, keys in (block or {}).items():
            where = document.line(("keys", str(name)))
            wanted.setdefault(str(name), _Line(str(keys or ""), document.name, where))
    checked = _checked(wanted) if wanted else Keymap()
    return Keymap(checked.keys, (*warnings, *checked.warnings))


def _checked(lines: dict[str, _Line]) -> Keymap:
    wanted = {name: line.keys for name, line in lines.items()}
    known = _known(wanted)
    names = {name for classes in known.values() for name in classes}
    problems: dict[str, str] = {}
    for name, keys in wanted.items():
        if name not in names:
            near = meant(name, names) or "In the help (?), `/` lists the actions."
            problems[name] = f"{name} is not an action. {near.rstrip()}"
        elif wrong := [key for key in map(str.strip, keys.split(",")) if not _is_key(key)]:
            problems[name] = f"{wrong[0]!r} is not a key. Write one like x, ctrl+x or f5."
    while clash := _clash({k: v for k, v in wanted.items() if k not in problems}, known):
        name, key, other = clash
        problems[name] = f"{key} is already the key of {other}. Choose another key for one of them."
    rows = sorted((lines[name].file, lines[name].line, words) for name, words in problems.items())
    warnings = tuple(f"{file}, line {line}: {words}" for file, line, words in rows)
    return Keymap({name: keys for name, keys in wanted.items() if name not in problems}, warnings)


def _is_key(text: str) -> bool:
    *modifiers, name = text.split("+") if len(text) > 1 else [text]
    named = name in _NAMES or key_to_character(name) is not None
    return all(word in _MODIFIERS for word in modifiers) and (len(name) == 1 or named)


def _keys(text: str) -> set[str]:
    return {binding.key for binding in Binding.make_bindings([Binding(text, "")])}


Known = dict[type[DOMNode], dict[str, str]]
"""The keys of each of our classes, by binding id."""


def _clash(wanted: dict[str, str], known: Known) -> tuple[str, str, str] | None:
    """Return a binding to set, one of its keys, and the binding that already uses it."""
    apps = {k: v for cls, ids in known.items() if issubclass(cls, App) for k, v in ids.items()}
    order = list(wanted)
    for name, keys in wanted.items():
        for cls, ids in known.items():
            # The app's keys work on every screen, but not below a dialog.
            here = ids if issubclass(cls, ModalScreen) else {**apps, **ids}
            if name not in here:
                continue
            for other, default in here.items():
                both = _keys(keys) & _keys(wanted.get(other, default))
                later = other not in wanted or order.index(name) > order.index(other)
                if other != name and both and later:
                    return name, min(both), other
    return None


def _known(wanted: dict[str, str]) -> Known:
    """Return the bindings of all our classes; import screens that are missing if needed."""
    known = dict(_loaded(DOMNode))
    if set(wanted) - {name for ids in known.values() for name in ids}:
        package = importlib.import_module("lumitui.app.tui")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
        known = dict(_loaded(DOMNode))
    return known


def _loaded(parent: type[DOMNode]) -> Iterator[tuple[type[DOMNode], dict[str, str]]]:
    for cls in parent.__subclasses__():
        if cls.__module__.startswith("lumitui."):
            ids: dict[str, str] = {}
            for base in cls.__mro__:
                for binding in vars(base).get("BINDINGS", ()):
                    if isinstance(binding, Binding) and binding.id:
                        ids.setdefault(binding.id, binding.key)
            yield cls, ids
        yield from _loaded(cls)
