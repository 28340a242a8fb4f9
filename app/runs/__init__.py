"""The door: what the command line, the screens and a notebook ask of the program.

`Runs` is everything that can be done with jobs. The stub beside this file lists it and what else
the interfaces need of other packages: types, errors, words. A name is imported when it is
requested, so that `lumitui --version` loads none of it.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path

_HOMES = {
    alias.asname or alias.name: (node.module, alias.name)
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom) and node.module
    for alias in node.names
}
"""The module of each name of the door, and its name there."""


def __getattr__(name: str) -> object:
    """Import a name when it is requested."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = _HOMES[name]
    value: object = getattr(import_module(module), own, None)
    if value is None:  # a module of that package
        value = import_module(f"{module}.{own}")
    setattr(sys.modules[__name__], name, value)
    return value
