"""The API for the command line, the screens and notebooks.

`Runs` has a method for everything that users do with jobs. The stub beside this file lists it with
the other packages' types, errors and functions that the interfaces need. Each name is imported
when it is first used, so that `lumitui --version` loads none of them.
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
"""Each public name, with its module and its name in that module."""


def __getattr__(name: str) -> object:
    """Import a name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = _HOMES[name]
    value: object = getattr(import_module(module), own, None)
    if value is None:  # a module of that package
        value = import_module(f"{module}.{own}")
    setattr(sys.modules[__name__], name, value)
    return value
