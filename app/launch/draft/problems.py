"""What is wrong or unwise in a job file, each with its field, its line and, where known, its fix.

Pure.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lumitui.app.job import edit
from lumitui.app.launch.rules.finding import Finding, Fix, Severity
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.reading.validation import Mistakes
from lumitui.remote.site.reading.yaml_document import Document, NotYaml

_RANK: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class Problem:
    """One thing to change in a job file, or to know about it."""

    severity: Severity
    message: str
    do: str = ""
    """What to do about it."""
    field: str = ""
    """The key that it is about, like `nodes` or `env.X`; "": no single one."""
    line: int | None = None
    """The 1-based line of the text; None: it is about no line."""
    fix: Fix | None = None

    @property
    def words(self) -> str:
        """What is wrong and what to do, in one line."""
        if self.fix:
            return f"{self.message} → {self.fix.words}"
        return f"{self.message} {self.do}".strip()


def problem_of(error: LumiError, document: Document | None) -> tuple[Problem, ...]:
    """Return the problems that keep a job file from being read or composed."""
    if isinstance(error, Mistakes):
        return tuple(
            Problem("error", f"{item.keys}: {item.message}.", "", item.keys, item.line,
                    Fix(f"rename it {item.near}", item.keys, item.near, renames=True)
                    if item.near else None)
            for item in error.mistakes
        )  # fmt: skip
    if isinstance(error, NotYaml):
        return (Problem("error", error.message, error.hint, "", error.line),)
    field = error.field if isinstance(error, InputError) else ""
    return (Problem("error", error.message, error.hint, field, line_of(document, field)),)


def of_finding(found: Finding, document: Document) -> Problem:
    """Return what the adviser says as a problem of the text."""
    line = line_of(document, found.field)
    return Problem(found.severity, found.message, found.do, found.field, line, found.fix)


def in_grid(problem: Problem, grid: Collection[str], document: Document) -> Problem:
    """Return `problem` at the grid, where that sets its field or what its fix would change."""
    fix = None if problem.fix and problem.fix.field in grid else problem.fix
    if problem.field in grid:
        return replace(problem, field="grid", line=line_of(document, "grid"), fix=fix)
    return replace(problem, fix=fix)


def line_of(document: Document | None, field: str) -> int | None:
    """Return the line of a field; None where the text does not have it."""
    if document is None or not field or field.split(".")[0] not in document.data:
        return None
    return document.line(edit.place_of_key(field))


def worst_problems_first(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return each problem once, errors first."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda item: _RANK[item.severity]))


def with_nearest(problem: Problem, value: str, choices: Sequence[str]) -> Problem:
    """Return `problem` with the choice as its fix that was probably meant by `value`."""
    if problem.fix or problem.severity != "error" or value in choices:
        return problem
    near = difflib.get_close_matches(value, choices, n=1) or choices[:1]
    if not near:
        return problem
    return replace(problem, fix=Fix(f"use {near[0]}", problem.field, near[0]))


def apply_fix(text: str, fix: Fix) -> str:
    """Return the job file's `text` with a fix applied.

    Raises:
        InputError: the text cannot be edited there.
    """
    place = edit.place_of_key(fix.field)
    if fix.renames:
        assert isinstance(fix.value, str)
        return edit.rename(text, place, fix.value)
    return edit.set_key(text, place, fix.value)


def apply_fixes(text: str, problems: Iterable[Problem]) -> tuple[str, tuple[Problem, ...]]:
    """Return the job file's `text` with the problems' fixes applied, and the problems they were of.

    Each key changes once: a second fix of one was made for the value that is gone. A fix of what
    only a person can edit is left out.
    """
    done: dict[str, Problem] = {}
    for problem in problems:
        key = problem.fix.field.split(".")[0] if problem.fix else ""
        if problem.fix is None or key in done:
            continue
        try:
            text = apply_fix(text, problem.fix)
        except InputError:
            continue
        done[key] = problem
    return text, tuple(done.values())


def at_field(problems: Iterable[Problem]) -> Mapping[str, tuple[Problem, ...]]:
    """Return the problems by the field of the form that they stand at; "" for no field."""
    found: dict[str, tuple[Problem, ...]] = {}
    for problem in problems:
        found[problem.field] = (*found.get(problem.field, ()), problem)
    return found
