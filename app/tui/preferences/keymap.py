"""The keys that a user chose: `keys:` in the settings file, checked against the bindings."""

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

from lumitui.app.runs import Document, InputError, read_document

_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_NAMES = {key.value for key in Keys}


@dataclass(frozen=True)
class Keymap:
    """Keys by the id of their binding, and what is wrong with the lines that were left out."""

    keys: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def read_keymap(file: Path) -> Keymap:
    """Read the keymap of `file`; a line that means nothing is left out."""
    try:
        document = read_document(file, plain=True)
    except InputError as error:
        return Keymap(warnings=(f"{error.message} {error.hint}",))
    block = document.data.get("keys")
    if block is None:
        return Keymap()
    if not isinstance(block, dict):
        line = document.line(("keys",))
        words = "`keys` is not a list of lines. Write one like `run.cancel: x` below it."
        return Keymap(warnings=(f"{file}, line {line}: {words}",))
    return _checked(document, {str(name): str(keys or "") for name, keys in block.items()})


def _checked(document: Document, wanted: dict[str, str]) -> Keymap:
    known = _known(wanted)
    names = {name for classes in known.values() for name in classes}
    problems: dict[str, str] = {}
    for name, keys in wanted.items():
        if name not in names:
            problems[name] = f"nothing is called {name}. The help (?) shows what has a key."
        elif wrong := [key for key in map(str.strip, keys.split(",")) if not _is_key(key)]:
            problems[name] = f"{wrong[0]!r} is not a key. Write one like x, ctrl+x or f5."
    while clash := _clash({k: v for k, v in wanted.items() if k not in problems}, known):
        name, key, other = clash
        problems[name] = f"{key} is the key of {other} already. Choose another key for one of them."
    lines = ((document.line(("keys", name)), words) for name, words in problems.items())
    warnings = tuple(f"{document.name}, line {line}: {words}" for line, words in sorted(lines))
    return Keymap({name: keys for name, keys in wanted.items() if name not in problems}, warnings)


def _is_key(text: str) -> bool:
    *modifiers, name = text.split("+") if len(text) > 1 else [text]
    named = name in _NAMES or key_to_character(name) is not None
    return all(word in _MODIFIERS for word in modifiers) and (len(name) == 1 or named)


def _keys(text: str) -> set[str]:
    """Return the keys of a binding, each by its long name."""
    return {binding.key for binding in Binding.make_bindings([Binding(text, "")])}


Known = dict[type[DOMNode], dict[str, str]]
"""The keys of each class of ours, by the id of the binding."""


def _clash(wanted: dict[str, str], known: Known) -> tuple[str, str, str] | None:
    """Return a wanted binding, one of its keys, and the binding that has this key, too."""
    apps = {k: v for cls, ids in known.items() if issubclass(cls, App) for k, v in ids.items()}
    for name, keys in wanted.items():
        for cls, ids in known.items():
            # The keys of the app work on every screen, but not below a dialog.
            here = ids if issubclass(cls, ModalScreen) else {**apps, **ids}
            if name not in here:
                continue
            for other, default in here.items():
                both = _keys(keys) & _keys(wanted.get(other, default))
                if other != name and both and (other not in wanted or _later(wanted, name, other)):
                    return name, min(both), other
    return None


def _later(wanted: dict[str, str], name: str, other: str) -> bool:
    order = list(wanted)
    return order.index(name) > order.index(other)


def _known(wanted: dict[str, str]) -> Known:
    """Return the bindings of every class of ours; screens that are not loaded yet are if needed."""
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
