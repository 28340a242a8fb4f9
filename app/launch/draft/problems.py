"""The problems of a job file, each with its field, its line and, if known, its fix. Pure."""

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from lumitui.app.job import edit
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.finding import RANK, Finding, Fix
from lumitui.remote.site.reading.validation import DocumentMistake, Mistakes
from lumitui.remote.site.reading.yaml_document import Document, NotYaml
from lumitui.remote.site.source_position import Position, at_key


def problem_of(error: LumiError, document: Document | None) -> tuple[Finding, ...]:
    """Return the problems for which a job file cannot be read or composed."""
    if isinstance(error, Mistakes):
        return tuple(_of_mistake(item) for item in error.mistakes)
    if isinstance(error, NotYaml):
        return (Finding("", "error", error.message, error.hint, at=Position(error.line)),)
    field = error.field if isinstance(error, InputError) else ""
    return (at_line(Finding("", "error", error.message, error.hint, at=at_key(field)), document),)


def _of_mistake(mistake: DocumentMistake) -> Finding:
    fix = None
    if mistake.near:
        at = at_key(mistake.keys)
        fix = Fix(f"rename it to {mistake.near}", at, mistake.near, renames=True)
    message = f"{mistake.keys}: {mistake.message}."
    at = Position(mistake.line, field=mistake.keys)
    return Finding("", "error", message, at=at, fix=fix)


def at_line(finding: Finding, document: Document | None) -> Finding:
    """Return a finding with its key's line."""
    field = finding.at.field
    return replace(finding, at=Position(line_of(document, field), field=field))


def in_grid(problem: Finding, grid: Collection[str], document: Document) -> Finding:
    """Return `problem` at the key `grid`, if the grid sets its field; no fix may change one."""
    fix = None if problem.fix and problem.fix.at.field in grid else problem.fix
    if problem.at.field in grid:
        return at_line(replace(problem, at=at_key("grid"), fix=fix), document)
    return replace(problem, fix=fix)


def line_of(document: Document | None, field: str) -> int:
    """Return the line of a field; 0 if the text lacks it."""
    if document is None or not field or field.split(".")[0] not in document.data:
        return 0
    return document.line(edit.place_of_key(field))


def worst_problems_first(problems: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return each problem once, errors first."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda item: RANK[item.severity]))


def with_nearest(problem: Finding, value: str, choices: Sequence[str]) -> Finding:
    """Return `problem` with a fix: the choice nearest to `value`."""
    if problem.fix or problem.severity != "error" or value in choices:
        return problem
    near = difflib.get_close_matches(value, choices, n=1) or choices[:1]
    if not near:
        return problem
    return replace(problem, fix=Fix(f"use {near[0]}", at_key(problem.at.field), near[0]))


def apply_fix(text: str, fix: Fix) -> str:
    """Return the job file's `text` with a fix applied.

    Raises:
        InputError: lumitui cannot edit the text there.
    """
    place = edit.place_of_key(fix.at.field)
    if fix.renames:
        assert isinstance(fix.value, str)
        return edit.rename(text, place, fix.value)
    return edit.set_key(text, place, fix.value)


def apply_fixes(text: str, problems: Iterable[Finding]) -> tuple[str, tuple[Finding, ...]]:
    """Return the job file's `text` with fixes applied, and the problems that they fixed.

    Each key changes once, since a second fix of it was for the old value. Fixes at places that
    only the user can edit are skipped.
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
