"""The part of JSON Schema that pydantic writes, for tests: what is wrong with a value."""

from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,),
    "number": (int, float), "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
_KNOWN = {
    "type", "properties", "required", "additionalProperties", "items", "prefixItems", "anyOf",
    "$ref", "enum", "const", "maxItems", "minItems", "title", "description", "default", "$defs",
    "$schema", "format", "uniqueItems", "minLength", "pattern", "minimum", "maximum", "oneOf",
    "exclusiveMinimum", "maxLength", "exclusiveMaximum", "minProperties", "propertyNames",
    "discriminator", "examples",
}  # fmt: skip


def mistakes(value: object, schema: Any, root: Any, at: str = "$") -> Iterator[str]:
    """Yield what is wrong with `value`; a keyword that is not read here is an error."""
    assert isinstance(schema, dict) and set(schema) <= _KNOWN, f"{at}: {set(schema) - _KNOWN}"
    if "$ref" in schema:
        yield from mistakes(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
        return
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        found = [list(mistakes(value, choice, root, at)) for choice in choices]
        if all(found):
            yield f"{at}: none of {len(found)}: {min(found, key=len)}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    kind = schema.get("type")
    if kind and (
        not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")
    ):
        yield f"{at}: {value!r:.80} is not of type {kind}"
    elif isinstance(value, dict):
        yield from _of_object(value, schema, root, at)
    elif isinstance(value, list):
        first = schema.get("prefixItems", [])
        rest = schema.get("items", {} if not first else None)
        for number, item in enumerate(value):
            each = first[number] if number < len(first) else rest
            if each is None:
                yield f"{at}[{number}] is one too many"
            else:
                yield from mistakes(item, each, root, f"{at}[{number}]")


def _of_object(value: Mapping[str, object], schema: Any, root: Any, at: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    yield from (f"{at}.{key} is missing" for key in schema.get("required", []) if key not in value)
    other = schema.get("additionalProperties", True)
    for key, item in value.items():
        if key in properties:
            yield from mistakes(item, properties[key], root, f"{at}.{key}")
        elif other is False:
            yield f"{at}.{key} is not in the schema"
        elif other is not True:
            yield from mistakes(item, other, root, f"{at}.{key}")
