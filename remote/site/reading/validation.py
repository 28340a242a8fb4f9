"""A YAML document checked by a pydantic model: every mistake as a sentence with file and line.

Pydantic names each kind of mistake (https://docs.pydantic.dev/latest/errors/validation_errors/);
its own words are for programmers.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.writer import HINT, is_newer, newer_words

if TYPE_CHECKING:
    from lumitui.remote.site.reading.yaml_document import Document, Place

_LONGEST = 40
_KINDS = {
    "int": "is not a whole number", "float": "is not a number", "finite_number": "is not a number",
    "bool": "is not true or false", "string": "is not text", "none": "must be omitted",
    "list": "is not a list; write [A, B]", "tuple": "is not a list; write [A, B]",
    "set": "is not a list; write [A, B]", "frozen_set": "is not a list; write [A, B]",
    "dict": "is not a block of `key: value` lines",
    "model": "is not a block of `key: value` lines",
    "dataclass": "is not a block of `key: value` lines",
}  # fmt: skip
_BOUNDS = {
    "greater_than_equal": ("ge", "is less than {}, the minimum"),
    "greater_than": ("gt", "must be more than {}"),
    "less_than_equal": ("le", "is more than {}, the maximum"),
    "less_than": ("lt", "must be less than {}"),
    "string_too_short": ("min_length", "has fewer than {} characters"),
    "string_too_long": ("max_length", "has more than {} characters"),
    "too_short": ("min_length", "has fewer than {} entries"),
    "too_long": ("max_length", "has more than {} entries"),
}


def mistake_words(detail: Mapping[str, object]) -> str:
    """Return the error, to be read after the key and a colon; `detail` is pydantic's."""
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
        limit = limits.get(name)
        if limit == 1 and name == "min_length":
            return "it is empty"
        return f"{value} {words.format(f'{limit:,}' if isinstance(limit, int) else limit)}"
    if kind in ("literal_error", "enum"):
        return f"{value} is not one of {str(limits.get('expected', '')).replace(chr(39), '')}"
    if kind == "string_pattern_mismatch":
        return f"{value} does not have the required form ({limits.get('pattern')})"
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


Model = TypeVar("Model", bound=BaseModel)
_MOST_MISTAKES = 20


@dataclass(frozen=True)
class DocumentMistake:
    """One mistake in a document, and where it is."""

    place: Place
    where: str
    """`file:line`."""
    line: int
    message: str
    near: str = ""
    """The key that was probably meant, if the key is unknown."""

    @property
    def keys(self) -> str:
        """The key with those above it, like `container.image`; `the file` for all of it."""
        # pydantic adds the names of validators to a place.
        path = ".".join(str(part) for part in self.place if not str(part).startswith("function-"))
        return path or "the file"


class Mistakes(InputError):
    """Everything that is wrong in a document."""

    def __init__(self, message: str, hint: str, mistakes: tuple[DocumentMistake, ...]) -> None:
        """Keep the `mistakes` that `message` lists."""
        super().__init__(message, hint)
        self.mistakes = mistakes


def validate(
    document: Document,
    model: type[Model],
    data: Mapping[str, object],
    keys: str = "`lumitui schema` lists the keys.",
    place: Place = (),
) -> Model:
    """Return `data` as a `model`; `document` adds lines to the errors, reported all together.

    `keys` says where a reader finds the keys, `place` where in the document `data` is.

    Raises:
        Mistakes: one sentence for every mistake, with file, line and the nearest known key.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        details = [one for one in error.errors(include_url=False) if not _follows(one)]
        every = [
            _mistake(document, model, data, detail, place) for detail in details[:_MOST_MISTAKES]
        ]
        mistakes = tuple(dict.fromkeys(every))
        if newer := _newer(document):
            words = newer_words(newer.name, newer.writer)
            one = DocumentMistake((), f"{newer.name}:1", 1, f"{words} {HINT}")
            raise Mistakes(words, HINT, (one,)) from error
        lines = [f"  {item.where}: {item.keys}: {item.message}" for item in mistakes]
        count = f"{max(len(details), 2)} mistakes" if len(lines) > 1 else "a mistake"
        if len(details) > _MOST_MISTAKES:
            lines.append(f"  … and {len(details) - _MOST_MISTAKES} more")
        said = f"{document.name} has {count}:\n" + "\n".join(lines)
        raise Mistakes(said, keys, mistakes) from error


def _follows(detail: Mapping[str, object]) -> bool:
    """Return whether a list only counts as too short because its entries have mistakes."""
    value, limits = detail.get("input"), detail.get("ctx")
    if detail["type"] != "too_short" or not isinstance(limits, Mapping):
        return False
    return isinstance(value, list | tuple) and len(value) >= limits["min_length"]


def _newer(document: Document) -> Document | None:
    """Return the document, or one that it extends, that a newer lumitui wrote."""
    layer: Document | None = document
    while layer is not None and not is_newer(layer.writer):
        layer = layer.below
    return layer


def _mistake(
    document: Document,
    model: type[BaseModel],
    data: Mapping[str, object],
    detail: Mapping[str, object],
    above: Place,
) -> DocumentMistake:
    place = _in_data(tuple(detail["loc"]), data)  # type: ignore[arg-type]  # always a tuple
    near: list[str] = []
    if detail["type"] == "extra_forbidden":
        fields = _fields_at(model, place[:-1])
        if place[-1] in fields:
            place, message = _of_another_kind(document, place, data)
        else:
            near = difflib.get_close_matches(str(place[-1]), fields, n=1)
            message = "unknown key" + (f"; did you mean `{near[0]}`?" if near else "")
    elif detail["type"] == "missing":
        message = "this key is required"
    else:
        message = mistake_words(detail)
    place = (*above, *place)
    where, line = document.where(place), document.line(place)
    return DocumentMistake(place, where, line, message, near[0] if near else "")


def _of_another_kind(document: Document, place: Place, data: object) -> tuple[Place, str]:
    """Return the place and the error of a key that only another `kind:` has.

    Mappings are inherited key by key: one that changes `kind:` keeps the keys of the kind before.
    """
    for part in place[:-1]:
        data = data[part]  # type: ignore[index]  # `place` is one of `data`
    kind = (*place[:-1], "kind")
    chosen = data.get("kind") if isinstance(data, Mapping) else None
    changed, inherited = document.level(kind), document.level(place)
    if changed is not None and inherited is not None and changed < inherited:
        return kind, (
            f"{chosen!r} differs from the kind in the profile that it extends, so the inherited "
            f"`{place[-1]}` is invalid; write `{place[-1]}: null` beside it"
        )
    return place, f"this key belongs to another kind; `kind: {chosen}` does not have it"


def _in_data(place: Place, data: object) -> Place:
    """Return `place` without pydantic's insertions, like the kind in a union."""
    kept: list[int | str] = []
    for part in place[:-1]:
        try:
            data = data[part]  # type: ignore[index]  # the path decides, not the type
        except (TypeError, KeyError, IndexError):
            continue
        kept.append(part)
    return (*kept, *place[-1:])


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _fields_at(model: type[BaseModel], place: Place) -> list[str]:
    """Return the keys a model knows at `place`, through nested models, lists and mappings."""
    schema = _schema(model)
    definitions = schema.get("$defs", {})
    nodes = [schema]
    for part in place:
        following = []
        for node in map(lambda n: definitions.get(n.get("$ref", "").split("/")[-1], n), nodes):
            for choice in (node, *node.get("anyOf", ()), *node.get("oneOf", ())):
                choice = definitions.get(choice.get("$ref", "").split("/")[-1], choice)
                step = choice.get("properties", {}).get(part)
                step = step or choice.get("additionalProperties") or choice.get("items")
                if isinstance(step, dict):
                    following.append(step)
        nodes = following
    keys: list[str] = []
    for node in nodes:
        for choice in (node, *node.get("anyOf", ()), *node.get("oneOf", ())):
            choice = definitions.get(choice.get("$ref", "").split("/")[-1], choice)
            keys += list(choice.get("properties", {}))
    return keys
