"""Shared phrases of findings: numbers, names and changes."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from lumitui.app.knowledge.script_job import Option, ScriptJob, Variable
from lumitui.remote.site.finding import Fix
from lumitui.remote.site.source_position import Position

INHERIT = "`export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK`"
"""What makes srun pass sbatch's cores on."""


def some(number: float, noun: str) -> str:
    """Return `1 node`, `4 nodes`, `1.5 nodes`."""
    return f"{number:,g} {noun}{'' if number == 1 else 's'}"


def one_of(names: Iterable[str]) -> str:
    """Return `a, b or c`."""
    words = list(names)
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def listed(names: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that was probably meant, or None."""
    found = get_close_matches(name.lower(), [*names], n=1, cutoff=0.75)
    return found[0] if found else None


def rewrite(option: Option, text: str) -> Fix | None:
    """Return the change of an option to `text`; None if the option is not in a script."""
    return Fix(f"write {text}", option.at, text) if option.at.line and not option.at.field else None


def setting(variable: Variable, value: str, words: str = "") -> Fix | None:
    """Return the change of a variable's assignment to `value`; None if not in a script."""
    at, name = variable.at, variable.name
    return Fix(words or f"set {name} to {value}", at, f"{name}={value}") if at.line else None


def removal(job: ScriptJob, option: Option) -> Fix | None:
    """Return the removal of an option, with its line if it is alone on it."""
    at = option.at
    if not at.line or at.field or at.file or not job.text:
        return None
    line = job.text.split("\n")[at.line - 1 : at.line]
    words = f"remove {option.raw or '--' + option.name}"
    if line and line[0].removeprefix("#SBATCH").strip() == option.raw.strip():
        return Fix(words, Position(at.line, 1, at.line + 1, 1), "")
    if line and at.end_line in (None, 0, at.line) and at.column > 1 and at.end_column:
        before, after = line[0][: at.column - 1], line[0][at.end_column - 1 :]
        if before.endswith(" ") and (not after or after.startswith(" ")):
            at = Position(at.line, at.column - 1, at.line, at.end_column)
    return Fix(words, at, "")
