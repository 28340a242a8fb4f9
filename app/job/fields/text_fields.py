"""The types of a job file's text fields, each with its validation.

When `regex` compiles a pattern of `metrics:`, it unrolls counted repeats without a time limit:
`a{100000}` takes 0.05 s and 10 MB, and `((a{1000}){1000}){1000}` would take a day.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from lumitui.remote.site import walltime
from lumitui.remote.site.masked_text import is_harmless
from lumitui.remote.site.safe_text import UNSEEN

_BREAKS = re.compile("[\t\n]")
_LOADS = re.compile(
    r"(?<!\S)(?:ml(?:\s+(?:load|add))?|module\s+(?:load|add))\s+(?![-+])(?!(?:purge|unload|del|rm"
    r"|swap|switch|reset|restore|save|list|av|avail|spider|show|use|unuse)\b)"
)
"""The beginning of a shell line that loads modules; of other commands of Lmod, nothing is one."""


@dataclass(frozen=True)
class ShortForm:
    """Marks in the JSON schema that a mapping may be written as a text, or as a list of texts.

    BeforeValidator's `json_schema_input_type` could do this, but raises KeyError before pydantic
    2.12.
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
            f"{text} is ambiguous; write {text}:00 for {text} minutes or {text}:00:00 for {text} "
            "hours"
        )
    return walltime.in_slurms_form(text)


def _positive(text: str) -> str:
    if walltime.seconds_of(text) <= 0:
        raise ValueError("the time must be more than zero")
    return text


def _place(text: str) -> str:
    if text.startswith("~"):
        raise ValueError(f"no shell expands ~; write $HOME{text[1:]}")
    if text.startswith("-"):
        raise ValueError(f"{text!r} begins with `-`, so a program would read it as an option")
    if "/" in text and not text.startswith(("/", "$")):
        path = text.removeprefix("./")
        raise ValueError(f"{text!r} is a relative path; write an absolute one, like $HOME/{path}")
    return text


def _a_minute(text: str) -> str:
    if walltime.seconds_of(text) < 60:
        raise ValueError("it must be at least a minute: the log names a hung rank after 40 seconds")
    return text


def module_names(value: Any) -> Any:
    """Return `value` without the `ml` or `module load` of a shell line."""
    items = [value] if isinstance(value, str) else value
    text = " ".join(map(str, items)) if isinstance(items, list | tuple) else ""
    return _LOADS.sub("", text).split() if _LOADS.search(text) else items


def _formed(pattern: str, words: str, max_length: int | None = None) -> Any:
    """Return the type of texts of the form `pattern`; `words` end the error for other texts."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text) or text.endswith("\n"):
            raise ValueError(f"{text!r} {words}" if text else "it is empty")
        return text

    shown = Field(max_length=max_length, json_schema_extra={"pattern": pattern})
    return Annotated[str, shown, AfterValidator(check)]


def _as_in_a_file(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


# A job file is read as text, so editors must accept numbers and Booleans in their place.
_ANY_SCALAR = Field(json_schema_extra={"type": ["string", "number", "boolean"]})
Text = Annotated[str, _ANY_SCALAR, BeforeValidator(_as_in_a_file), AfterValidator(_passable)]
"""Any text without control characters except tabs and newlines; Python may pass a number."""
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
Module = _formed(MODULE, "is not a module like PyTorch/2.7.1", max_length=200)
"""An argument of `module load`: a name, optionally with a version."""
Place = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_one_line),
                  AfterValidator(_place)]  # fmt: skip
"""An absolute path on the site, or a name there. A relative path would mean a different folder on
the login node than in the job, and conda would take it for a name."""
_LIST = Field(json_schema_extra={"type": ["array", "string"]})
_ONE = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
Places = Annotated[tuple[Place, ...], _ONE, _LIST]
"""Several such folders or names, or a single one."""
Modules = Annotated[tuple[Module, ...], BeforeValidator(module_names), _LIST]  # type: ignore[valid-type]
"""Several modules, or a line of the shell that loads them."""
# The length comes first: after a validator, pydantic's message would count "items".
Name = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_one_line)]
"""A job's name: one line of at most 100 characters."""
Walltime = Annotated[str, BeforeValidator(_unambiguous), AfterValidator(_positive)]
"""A time limit in Slurm's form, like `02:00:00`; `1h30m` becomes `01:30:00`."""
Hang = Annotated[Walltime, AfterValidator(_a_minute)]
"""How long a rank may hang, in Slurm's form: `00:10:00`."""
Memory = _formed(r"^[0-9]{1,9}[KMGT]?$", "is not an amount of memory like 60G")
"""An amount of memory as `--mem` takes it, like `60G`."""
Signal = _formed(
    r"^(B:)?[A-Z0-9]{1,12}@[0-9]{1,5}$", "is not a signal with its seconds, like USR1@120"
)
"""A signal and its seconds before the time limit, like `USR1@120`."""


# Words that end a part of a name: HF_TOKEN and APIKEY match, TOKENIZERS_PARALLELISM does not.
_SECRET = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)S?(?:_|$)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LAUNCH = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    | {"RUN_DIR", "SRUN_CPUS_PER_TASK", "PET_LOCAL_ADDR", "PET_SIGNALS_TO_HANDLE"}
    | {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT"}
)
# Variables of job.sh and lumitui.sh, which also use all names in small letters.
_SCRIPT = frozenset(
    {"ACTIVATE", "CODE", "CPU_BIND_MASKS", "NODE_TMP", "PROOF_DIR", "SIF", "VENV", "VIRTUAL_ENV"}
)
_SMALL = re.compile(r"[a-z]+")
# bash sets these itself, or ends at once if a job sets them (bash(1)).
_SHELL = frozenset(
    {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID", "BASHPID", "BASH_COMMAND"}
    | {"DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "FUNCNAME", "GROUPS", "HISTCMD", "LINENO"}
    | {"OLDPWD", "PWD", "RANDOM", "SECONDS", "SHLVL", "SRANDOM", "_"}
)


def is_taken(name: str) -> bool:
    """Return whether the launch, the job script or its shell uses the variable `name`."""
    return name in _LAUNCH | _SCRIPT | _SHELL or _SMALL.fullmatch(name) is not None


def check_environment_name(name: str) -> None:
    """Raise ValueError if a job file's `env:` may not set the variable `name`."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a variable name")
    if _SECRET.search(name) and not is_harmless(name):
        raise ValueError(
            f"{name} looks like a secret; list its name under `secrets:` and set it in your "
            "laptop's environment"
        )
    if name in _LAUNCH:
        raise ValueError(f"the launch itself sets {name}; remove it")
    _check_free(name)


def check_secret_name(name: str) -> None:
    """Raise ValueError if `secrets:` may not list `name`; never repeat a pasted value."""
    if not _NAME.fullmatch(name):
        raise ValueError("an entry is not a variable name; give names, never values")
    _check_free(name)


def _check_free(name: str) -> None:
    if is_taken(name):
        raise ValueError(f"the job script or its shell uses {name}; use another name")


MOST_CHARACTERS = 1000
"""Maximum length of a pattern; a log line is seldom longer."""
MOST_COPIES = 20_000
"""Maximum characters and groups of a pattern with its repeats written out."""

_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:[^\]\\]|\\.)*\])|(?P<open>\()|(?P<close>\))"
    r"|\{(?P<least>[0-9]*)(?:,(?P<most>[0-9]*))?\}|(?P<space>\s)|(?P<other>.)",
    re.DOTALL,
)
_COUNTED = re.compile(r"\{([0-9]*)(?:,([0-9]*))?\}")
# Verbose patterns have comments, and version 1 nests sets: only a full parser finds their groups.
_UNCLEAR = re.compile(r"\(\?(?:#|[a-zA-Z0-9-]*[Vx])")


def check_log_pattern(pattern: str) -> None:
    """Raise ValueError, a sentence's end, unless `pattern` has one group and compiles quickly."""
    if len(pattern) > MOST_CHARACTERS:
        raise ValueError(f"the pattern has more than {MOST_CHARACTERS} characters")
    if _copies(pattern) > MOST_COPIES:
        raise ValueError(
            f"its counted repeats expand to more than {MOST_COPIES} copies; use * or + instead "
            f"of {{…}}"
        )
    import regex  # late: few job files have patterns

    try:
        groups = regex.compile(pattern).groups
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError("the pattern needs exactly one (group)")


def _copies(pattern: str) -> int:
    """Return an upper bound on the items of `pattern` with its repeats written out."""
    if _UNCLEAR.search(pattern):
        product = len(pattern)
        for match in _COUNTED.finditer(pattern):
            product = min(product * _times(match[1], match[2]), MOST_COPIES + 1)
        return product
    sums, last = [0], 0  # of each open group, and of the item that a repeat would copy
    for token in _TOKEN.finditer(pattern):
        match token.lastgroup:
            case "open":
                sums.append(1)
            case "close" if len(sums) > 1:
                last = sums.pop()
                sums[-1] += last
            case "least" | "most":
                more = last * (_times(token["least"], token["most"]) - 1)
                sums[-1] += more
                last += more
            case "space":
                sums[-1] += 1
            case _:
                last = 1
                sums[-1] += 1
        if sums[-1] > MOST_COPIES:
            return sums[-1]
    return sum(sums)


def _times(least: str, most: str | None) -> int:
    # Nine digits exceed the limit, and int() refuses thousands of digits.
    return max(1, *(int(text[:9]) for text in (least, most) if text))
