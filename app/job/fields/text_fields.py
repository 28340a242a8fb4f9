"""The types of a job file's text fields, each with its validation."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from lumitui.remote.site import walltime
from lumitui.remote.site.safe_text import UNSEEN

_BREAKS = re.compile("[\t\n]")


@dataclass(frozen=True)
class ShortForm:
    """Marks in the JSON schema that a mapping may be written as a text, or as a list of texts.

    BeforeValidator's `json_schema_input_type` could, but raises KeyError before pydantic 2.12.
    """

    or_list: bool = False

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema of the short forms and of the mapping."""
        text = {"type": "string"}
        texts = [{"items": text, "type": "array"}] if self.or_list else []
        return {"anyOf": [text, *texts, handler(core)]}


def _passable(text: str) -> str:
    if UNSEEN.search(text):
        raise ValueError("it has a control character")
    return text


def _one_line(text: str) -> str:
    if UNSEEN.search(text) or _BREAKS.search(text):
        raise ValueError("it must be one line without control characters")
    return text


def _relative(text: str) -> str:
    path = PurePosixPath(text)
    if not text.strip():
        raise ValueError("it is empty; write a path inside the project")
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{text!r} must be a path inside the project")
    return _one_line(text)


def _unambiguous(value: object) -> object:
    text = str(value).strip()
    if text.isdigit():
        raise ValueError(
            f"{text} alone is ambiguous; write {text}:00 for {text} minutes "
            f"or {text}:00:00 for {text} hours"
        )
    return text


def _positive(text: str) -> str:
    if walltime.seconds_of(text) <= 0:
        raise ValueError("the time must be more than zero")
    return text


def _a_minute(text: str) -> str:
    if walltime.seconds_of(text) < 60:
        raise ValueError("it must be at least a minute: the log names a hung rank after 40 seconds")
    return text


def _formed(pattern: str, words: str, max_length: int | None = None) -> Any:
    """Return the type of texts of the form `pattern`; `words` end the error about any other."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text) or text.endswith("\n"):
            raise ValueError(f"{text!r} {words}" if text else "it is empty")
        return text

    shown = Field(max_length=max_length, json_schema_extra={"pattern": pattern})
    return Annotated[str, shown, AfterValidator(check)]


# A job file is read as text, so editors must accept numbers and Booleans in their place.
_ANY_SCALAR = Field(json_schema_extra={"type": ["string", "number", "boolean"]})
Text = Annotated[str, _ANY_SCALAR, AfterValidator(_passable)]
"""Any text without control characters but tabs and newlines."""
Line = Annotated[str, AfterValidator(_one_line)]
"""One line of text without control characters."""
Inside = Annotated[str, AfterValidator(_relative)]
"""A path inside the project, with forward slashes."""
Word = _formed(
    r"^[A-Za-z0-9._@:/+-]+$",
    "has a character that is not allowed; use letters, digits and . _ @ : / + -",
    max_length=200,
)
"""Text that is safe as a word of an #SBATCH line."""
MODULE = r"^[A-Za-z0-9._@+][A-Za-z0-9._@:/+-]*$"
Module = _formed(MODULE, "is not a module like rocm/6.2.2", max_length=200)
"""An argument of `module load`: a name, optionally with a version."""
# The length comes first: after a validator, pydantic's message would count "items".
Name = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_one_line)]
"""A job's name: one line of at most 100 characters."""
Walltime = Annotated[str, BeforeValidator(_unambiguous), AfterValidator(_positive)]
"""A time limit in Slurm's form, like `02:00:00`."""
Hang = Annotated[Walltime, AfterValidator(_a_minute)]
"""How long a rank may hang, in Slurm's form: `00:10:00`."""
Memory = _formed(r"^[0-9]{1,9}[KMGT]?$", "is not an amount of memory like 60G")
"""An amount of memory as `--mem` takes it, like `60G`."""
Signal = _formed(
    r"^(B:)?[A-Z0-9]{1,12}@[0-9]{1,5}$", "is not a signal with its seconds, like USR1@120"
)
"""A signal and its seconds before the time limit, like `USR1@120`. With `B:` Slurm signals the job
script, which creates the file `stop` in RUN_DIR."""
