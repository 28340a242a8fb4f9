"""The JSON Schema of a model for editors, with the docstring of each key as its description."""

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from textwrap import dedent
from typing import Any, get_args

from pydantic import BaseModel


def described_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of `model`, with each key's docstring as its description.

    pydantic's `use_attribute_docstrings` would double the start-up time of each command.
    """
    schema = model.model_json_schema()
    nodes = {model.__name__: schema} | schema.get("$defs", {})
    for part in _parts(model):
        properties = nodes.get(part.__name__, {}).get("properties", {})
        for name, words in _docstrings(part).items():
            if name in properties:
                properties[name]["description"] = words
    return schema


def _parts(model: type[BaseModel], seen: set[type] | None = None) -> Iterator[type[BaseModel]]:
    """Yield the model and the models of its fields."""
    seen = set() if seen is None else seen
    if model in seen:
        return
    seen.add(model)
    yield model
    for info in model.model_fields.values():
        for kind in _classes(info.annotation):
            yield from _parts(kind, seen)


def _classes(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _classes(part)


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring below each field of the model, the bases' fields first."""
    docstrings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, BaseModel) or base is BaseModel:
            continue
        (tree,) = ast.parse(dedent(inspect.getsource(base))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for field, below in pairwise(body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    docstrings[name] = " ".join(words.split())
    return docstrings
