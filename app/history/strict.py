"""Checks of values against a dataclass's field types, without conversion. Pure.

A failing disk returns anything, and importing pydantic takes longer than reading a list of runs.
"""

import json
import math
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType
from typing import Any, get_args, get_origin

_WORDS = {str: "string", int: "integer", float: "number", bool: "boolean"}

Check = Callable[[object, str], Any]
"""Takes a value and the name of its place; returns the value or raises ValueError."""


def from_json(check: Check, text: str | bytes, place: str) -> Any:
    """Return the checked content of JSON; ValueError, with the field below `place`, if invalid."""
    try:
        data = json.loads(text)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{place}: Invalid JSON: {error}") from error
    return check(data, place)


def check_of(kind: Any) -> Check:
    """Return the checker for values of a type.

    Supports text, numbers, None, unions of these, tuples of one type, mappings from numbers, and
    dataclasses of these. JSON lists become tuples, and keys become numbers where required.
    """
    if is_dataclass(kind):
        return _record(kind)
    if get_origin(kind) is tuple:
        return _tuple(check_of(get_args(kind)[0]))
    if get_origin(kind) is dict:
        return _numbered(check_of(get_args(kind)[1]))
    return _plain(get_args(kind) or (kind,))


_BEYOND = 1 << 63
"""What neither a column of SQLite nor a clock can hold."""


def _is_beyond(value: object) -> bool:
    if isinstance(value, int):
        return not -_BEYOND <= value < _BEYOND
    return isinstance(value, float) and not math.isfinite(value)


def _plain(kinds: tuple[type, ...]) -> Check:
    exact = frozenset(kinds)
    words = [_WORDS[kind] for kind in kinds if kind is not NoneType]
    complaint = f"Input should be a valid {' or '.join(words)}"

    def check(value: object, place: str) -> object:
        # Exact type: True does not count as a number.
        if type(value) in exact and not _is_beyond(value):
            return value
        if type(value) is int and float in exact and abs(value) < _BEYOND:
            return float(value)
        raise ValueError(f"{place}: {complaint}")

    return check


def _tuple(item: Check) -> Check:
    def check(value: object, place: str) -> object:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{place}: Input should be a valid list")
        return tuple(item(each, f"{place}.{at}") for at, each in enumerate(value))

    return check


def _numbered(item: Check) -> Check:
    def check(value: object, place: str) -> object:
        if not isinstance(value, dict):
            raise ValueError(f"{place}: Input should be a valid object")
        return {_number(key, place): item(each, f"{place}.{key}") for key, each in value.items()}

    return check


def _number(key: object, place: str) -> int:
    try:
        return int(str(key))
    except ValueError:
        raise ValueError(f"{place}.{key}: Input should be a valid integer") from None


def _record(kind: Any) -> Check:
    parts: list[tuple[Field[Any], Check]] = [(item, check_of(item.type)) for item in fields(kind)]

    def check(value: object, place: str) -> object:
        if not isinstance(value, dict):
            raise ValueError(f"{place}: Input should be a valid object")
        values = {}
        for item, of_item in parts:
            if item.name in value:
                values[item.name] = of_item(value[item.name], f"{place}.{item.name}")
            elif item.default is MISSING:
                raise ValueError(f"{place}.{item.name}: Field required")
        return kind(**values)

    return check
