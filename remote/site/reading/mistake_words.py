"""What is wrong with a value of a job file or a profile, as the end of a sentence. Pure.

Pydantic names each kind of mistake (https://docs.pydantic.dev/latest/errors/validation_errors/);
its own words are for programmers.
"""

from collections.abc import Mapping, Sequence

_LONGEST = 40
_KINDS = {
    "int": "is not a whole number", "float": "is not a number", "finite_number": "is not a number",
    "bool": "is neither true nor false", "string": "is not text", "none": "must be left out",
    "list": "is not a list; write [A, B]", "tuple": "is not a list; write [A, B]",
    "set": "is not a list; write [A, B]", "frozen_set": "is not a list; write [A, B]",
    "dict": "is not a block of `key: value` lines",
    "model": "is not a block of `key: value` lines",
    "dataclass": "is not a block of `key: value` lines",
}  # fmt: skip
_BOUNDS = {
    "greater_than_equal": ("ge", "is less than {}, the least that is allowed"),
    "greater_than": ("gt", "must be more than {}"),
    "less_than_equal": ("le", "is more than {}, the most that is allowed"),
    "less_than": ("lt", "must be less than {}"),
}
_LENGTHS = {
    "string_too_short": ("min_length", "has fewer than {} characters"),
    "string_too_long": ("max_length", "has more than {} characters"),
    "too_short": ("min_length", "has fewer than {} entries"),
    "too_long": ("max_length", "has more than {} entries"),
}


def mistake_words(detail: Mapping[str, object]) -> str:
    """Return what is wrong, to be read after the key and a colon; `detail` is pydantic's."""
    kind, context = str(detail["type"]), detail.get("ctx")
    limits = context if isinstance(context, Mapping) else {}
    if kind in ("value_error", "assertion_error"):
        return str(limits.get("error", detail["msg"]))
    if kind == "union_tag_invalid":
        kinds = str(limits.get("expected_tags", "")).replace("'", "")
        return f"{limits.get('tag')!r} is not a kind; write `kind:` with one of {kinds}"
    if kind == "union_tag_not_found":
        return "`kind:` is missing; `lumitui schema site` lists the kinds and the keys of each"
    value = given(detail.get("input"))
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{value} {words.format(_number(limits.get(name)))}"
    if kind in _LENGTHS:
        name, words = _LENGTHS[kind]
        limit = limits.get(name)
        if limit == 1 and name == "min_length":
            return "it is empty"
        return f"{value} {words.format(_number(limit))}"
    if kind in ("literal_error", "enum"):
        return f"{value} is not one of {str(limits.get('expected', '')).replace(chr(39), '')}"
    if kind == "string_pattern_mismatch":
        return f"{value} does not have the form that is allowed here ({limits.get('pattern')})"
    if kind == "string_type" and isinstance(detail.get("input"), bool | int | float):
        return f"{value} is not text; put it in quotes"
    # int_parsing, int_type, int_from_float, int_parsing_size …
    stem = next((name for name in sorted(_KINDS, reverse=True) if kind.startswith(name)), "")
    if stem:
        return f"{value} {_KINDS[stem]}"
    return f"{value} cannot be used here"


def given(value: object) -> str:
    """Return a value as a user finds it in the file, shortened."""
    if value is None:
        return "an empty value"
    if isinstance(value, Mapping):
        return "a block of keys"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    if not text.strip():
        return "an empty text"
    return repr(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
