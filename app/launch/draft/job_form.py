"""A job file as a form: the fields of `JobSpec` with their values, choices and problems. Pure."""

import difflib
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lumitui.app.job import edit
from lumitui.app.job.edit import Value
from lumitui.app.job.fields.text_fields import module_names
from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.app.launch.draft.printed_series import offers
from lumitui.app.launch.launcher_templates import launchers
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.validation import DocumentMistake, Mistakes
from lumitui.remote.site.reading.yaml_document import Document, NotYaml
from lumitui.remote.site.source_position import Position, at_key
from lumitui.remote.site.walltime import seconds_of


def problem_of(error: LumiError, document: Document | None) -> tuple[Finding, ...]:
    """Return the problems that keep a job file from being read or composed."""
    if isinstance(error, Mistakes):
        return tuple(_of_mistake(item) for item in error.mistakes)
    if isinstance(error, NotYaml):
        message = error.message.partition(f"line {error.line}: ")[2] or error.message
        return (Finding("", "error", message, error.hint, at=Position(error.line)),)
    field = error.field if isinstance(error, InputError) else ""
    return (at_line(Finding("", "error", error.message, error.hint, at=at_key(field)), document),)


def _of_mistake(mistake: DocumentMistake) -> Finding:
    fix = None
    if mistake.near:
        at = at_key(mistake.keys)
        fix = Fix(f"rename it to {mistake.near}", at, mistake.near, renames=True)
    end = "" if mistake.message.endswith("?") else "."
    message = f"{mistake.keys}: {mistake.message}{end}"
    at = Position(mistake.line, field=mistake.keys)
    return Finding("", "error", message, at=at, fix=fix)


def at_line(finding: Finding, document: Document | None) -> Finding:
    """Return a finding with its key's line."""
    field = finding.at.field
    return replace(finding, at=Position(line_of(document, field), field=field))


def in_grid(problem: Finding, grid: Collection[str], document: Document) -> Finding:
    """Return `problem` at the key `grid` if the grid sets its field; fixes never change a grid."""
    of_cell = grid and problem.fix and problem.fix.at.field in (*grid, "args")
    fix = None if of_cell else problem.fix
    if problem.at.field in grid:
        return at_line(replace(problem, at=at_key("grid"), fix=fix), document)
    return replace(problem, fix=fix)


def line_of(document: Document | None, field: str) -> int:
    """Return the line of a field; 0 if the text lacks it."""
    if document is None or not field or field.split(".")[0] not in document.data:
        return 0
    return document.line(edit.place_of_key(field))


def with_nearest(problem: Finding, value: str, choices: Sequence[str]) -> Finding:
    """Return `problem` with a fix: the choice nearest to `value`."""
    if problem.fix or problem.severity != "error" or value in choices:
        return problem
    near = (difflib.get_close_matches(value, choices, n=1) or choices)[0]
    return replace(problem, fix=Fix(f"use {near}", at_key(problem.at.field), near))


def apply_fix(text: str, fix: Fix) -> str:
    """Return the job file's `text` with a fix applied; InputError if lumitui cannot edit it."""
    place = edit.place_of_key(fix.at.field)
    if fix.renames:
        assert isinstance(fix.value, str)
        return edit.rename(text, place, fix.value)
    for key, value in fix.below:
        text = edit.set_key(text, (*place, *key.split(".")), value)
    return text if fix.below else edit.set_key(text, place, fix.value)


def apply_fixes(text: str, problems: Iterable[Finding]) -> tuple[str, tuple[Finding, ...]]:
    """Return the job file's `text` with fixes applied, and the problems that they fixed.

    Each key changes once: a second fix is for the old value. Fixes that cannot be made are skipped.
    """
    done: dict[str, Finding] = {}
    for problem in problems:
        key = problem.fix.at.field.split(".")[0] if problem.fix else ""
        if problem.fix is None or key in done:
            continue
        try:
            text = apply_fix(text, problem.fix)
        except InputError:
            continue
        done[key] = problem
    return text, tuple(done.values())


Kind = Literal["text", "number", "choice", "words", "pairs", "lists"]


@dataclass(frozen=True)
class FieldChoice:
    """A selectable value of a field."""

    value: str
    words: str = ""
    """The value's meaning or limits."""


@dataclass(frozen=True)
class Field:
    """One line of the form."""

    key: str
    kind: Kind
    value: str
    """The value as the user reads and types it; "" if the file lacks the key."""
    default: str
    """The default if the file lacks the key."""
    help: str
    choices: tuple[FieldChoice, ...] = ()
    problems: tuple[Finding, ...] = ()

    @property
    def shown(self) -> str:
        """The value, or the default."""
        return self.value or self.default

    @property
    def steps(self) -> bool:
        """Whether the user can step through values."""
        return self.kind == "number" or len(self.choices) > 1


_FIELDS: tuple[tuple[str, Kind, str, str], ...] = (
    ("name", "text", "", "the job's name in the queue and in Runs"),
    ("site", "choice", "", "the cluster where the job runs"),
    ("account", "text", "none", "the project to bill"),
    ("partition", "choice", "", "the queue, which limits nodes and time"),
    ("nodes", "number", "1", "the number of nodes"),
    ("gpus_per_node", "number", "all", "GPUs per node, with one rank for each"),
    ("time", "text", "", "the time limit: hours:minutes:seconds"),
    ("trainer", "choice", "none", "a bundled trainer, or your own script"),
    ("script", "text", "none", "your program, inside the project"),
    ("args", "words", "none", "the program's arguments, quoted as for a shell"),
    ("grid", "lists", "no sweep", "a sweep, KEY=VALUE,VALUE …: one run per combination"),
    ("container.image", "text", "the site's", "the container image in which the ranks run"),
    ("container.generation", "choice", "the site's", "the image's group: modules and command"),
    ("modules", "words", "none", "modules to load after the site's own"),
    ("python", "text", "the site's", "the path of the Python that starts the program"),
    ("activate", "words", "none", "environments to activate: folders, or conda names"),
    ("venv", "words", "none", "packages that the image lacks, or a requirements file"),
    ("env", "pairs", "none", "NAME=VALUE …: the program's environment variables"),
    ("secrets", "words", "none", "your laptop's variables that the job may read"),
    ("launcher", "choice", "srun", "the program that starts the ranks"),
    ("strategy", "choice", "ddp", "how the ranks train together"),
    ("chain", "number", "1 time limit", "the maximum number of time limits, for a longer run"),
    ("relaunch", "number", "0", "how many times to restart a failed program in its job"),
    ("resume", "words", "none", "arguments that make the program resume from a checkpoint"),
    ("binding", "choice", "auto", "whether to bind each rank to the cores near its GPU"),
    ("proof", "choice", "on", "whether the job measures its binding"),
    ("fetch", "words", "none", "the results that `lumitui fetch` copies"),
    ("metrics", "pairs", "none", "curves from the log, NAME=REGEX …: 'loss=loss ([0-9.]+)'"),
    ("notify", "text", "none", "your laptop's variable that holds the notification address"),
    ("after", "words", "none", "runs that must be done first, by id, name or `last`"),
    ("at_once", "number", "all", "how many runs of the grid may run at once"),
    ("preflight", "choice", "the site's", "whether to measure speed and network first"),
    ("signal", "text", "none", "a signal before the time limit, like USR1@120"),
    ("hang", "text", "none", "how long a rank may hang before the job ends, like 00:10:00"),
    ("memory", "text", "the site's", "memory per node, like 60G"),
    ("local_disk", "number", "none", "GiB of each node's local disk, at sites that offer it"),
    ("exclusive", "choice", "false", "whole nodes of a shared partition"),
    ("keep_compiled", "choice", "true", "whether to keep compiled code for the next job"),
    ("project", "text", ".", "the folder to send"),
    ("sbatch", "words", "none", "further sbatch options"),
)
GROUPS = {"name": "where", "trainer": "what", "launcher": "how", "after": "rare"}
"""The groups of the form, by their first field."""
_SHORT = {
    "binding": ("auto", "masks", "none"), "proof": ("on", "strict", "off"),
    "preflight": ("warn", "end", "off"),
    "exclusive": ("false", "true"), "keep_compiled": ("true", "false"),
}  # fmt: skip

_ON_CPU = {
    "gpus_per_node": "ranks per node, each on its own cores",
    "binding": "whether to bind each rank to its own cores",
}
"""The help of fields at a site without GPUs."""


def fields(
    data: Mapping[str, object], site: Site | None, sites: Mapping[str, str],
    problems: Iterable[Finding], images: Sequence[FieldChoice] = (), program: str = "",
) -> tuple[Field, ...]:  # fmt: skip
    """Return the form of a job file with the keys `data`, and the problems of each field.

    `sites` describes each site; `images` are the site's known ones; `program` is the script's text.
    """
    left = [*problems, *offers(data, program)]
    rows = []
    for key, kind, default, text in _FIELDS:
        if key in ("venv", "notify") and isinstance(data.get(key), Mapping):
            continue  # the form cannot show its further keys
        own = tuple(item for item in left if _is_at(item.at.field, key))
        left = [item for item in left if item not in own]
        value = written(data, key)
        options = _choices(key, site, sites)
        if key == "container.image" and site and (images or site.containers):
            options = _image_choices(site, images)
        if key == "modules" and site and site.modules:
            default = "the site's: " + ", ".join(site.modules).replace("module load ", "")
        names = [option.value for option in options]
        if kind == "choice" and names:
            own = tuple(with_nearest(item, value, names) for item in own)
        if site is not None and site.node.on_cpu:
            text = _ON_CPU.get(key, text)
        rows.append(Field(key, kind, value, default, text, options, own))
    return tuple(rows)


def loose(problems: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the problems that belong to no field of the form."""
    keys = [row[0] for row in _FIELDS]
    return tuple(item for item in problems if not any(_is_at(item.at.field, key) for key in keys))


def _is_at(field: str, key: str) -> bool:
    return field == key or (field.startswith(f"{key}.") and key != "container")


def _choices(key: str, site: Site | None, sites: Mapping[str, str]) -> tuple[FieldChoice, ...]:
    if key == "site":
        return tuple(FieldChoice(name, text) for name, text in sites.items())
    if key == "strategy":
        return tuple(FieldChoice(name, row.summary) for name, row in STRATEGIES.items())
    if key == "trainer":
        rows = (
            FieldChoice(name, "strategies: " + ", ".join(row.strategies))
            for name, row in TRAINERS.items()
        )
        return (FieldChoice("", "none: your own script"), *rows)
    if key in _SHORT:
        return tuple(FieldChoice(name) for name in _SHORT[key])
    if site is None:
        return ()
    if key == "partition":
        return tuple(FieldChoice(name, limits(row)) for name, row in site.partitions.items())
    if key == "launcher":
        return tuple(FieldChoice(name, launchers()[name].summary) for name in site.launchers)
    if key == "container.generation":
        return (FieldChoice("", "the site's own"), *(FieldChoice(name) for name in site.containers))
    return ()


def _image_choices(site: Site, images: Sequence[FieldChoice]) -> tuple[FieldChoice, ...]:
    """Return the profile's images and the known images of the site, each once."""
    own = [FieldChoice(one.image, name) for name, one in site.containers.items() if one.image]
    choices = [FieldChoice("", "the site's own"), *own, *images]
    return tuple({item.value: item for item in choices}.values())


def limits(partition: Partition) -> str:
    """Return a partition's limits: `up to 1,024 nodes, 48 h, whole nodes`."""
    nodes = f"up to {partition.max_nodes:,} node{'' if partition.max_nodes == 1 else 's'}"
    shares = "whole nodes" if partition.allocation == "node" else "parts of nodes"
    gpus = f", {partition.max_gpus} GPUs" if partition.max_gpus else ""
    return f"{nodes}{gpus}, {seconds_of(partition.max_time) / 3600:g} h, {shares}"


# -- values as text


def written(data: Mapping[str, object], key: str) -> str:
    """Return the value of `key` as one line of text; "" if it is not set."""
    value: object = data
    for part in edit.place_of_key(key):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        return ""
    if isinstance(value, Mapping):
        lists = {name: item if isinstance(item, list) else [item] for name, item in value.items()}
        pairs = (f"{name}={','.join(map(str, items))}" for name, items in lists.items())
        return " ".join(map(shlex.quote, pairs))
    if isinstance(value, list):
        return " ".join(shlex.quote(str(word)) for word in value)
    return str(value)


def now(field: Field, text: str) -> Field:
    """Return `field` with its value in a newer, perhaps unchecked `text` of the job file."""
    try:
        value = written(Document(text, "the job file", plain=True).data, field.key)
    except InputError:
        return field
    return replace(field, value=value)


def read(field: Field, text: str) -> Value | None:
    """Return the user's input in `field` as the job file's value; None removes the key.

    Raises:
        InputError: a quote is not closed, or a pair lacks `=`.
    """
    text = text.strip()
    if not text:
        return None
    if field.kind in ("text", "number", "choice"):
        return text
    try:
        words = shlex.split(text)
    except ValueError as error:
        message = f"{field.key}: {text} has a quote that is not closed."
        raise InputError(message, "Close the quote.") from error
    if field.kind == "words":
        return words if field.key != "modules" else module_names(words)
    pairs = [word.partition("=") for word in words]
    if wrong := next((name for name, sign, _ in pairs if not sign), None):
        raise InputError(f"{field.key}: {wrong} has no value.", f"Write {wrong}=VALUE.")
    if field.kind == "pairs":
        return {name: value for name, _, value in pairs}
    return {name: [item for item in value.split(",") if item] for name, _, value in pairs}


def stepped(field: Field, step: int) -> str | None:
    """Return the number or choice `step` places after the current one, or None."""
    if field.kind == "number":
        count = int(field.value) if field.value.isdigit() else 1 if field.key == "nodes" else 0
        return str(count + step) if count + step >= 1 else None
    names = [choice.value for choice in field.choices]
    if len(names) < 2:
        return None
    at = names.index(field.shown) if field.shown in names else names.index("") if "" in names else 0
    if field.shown not in names and "" not in names:
        return names[0]
    return names[(at + step) % len(names)]
