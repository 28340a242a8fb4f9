"""The runs of a job file: a grid has one for each combination of values, `then:` a sequence. Pure.

grid:
  lr: [1e-3, 3e-4]       # the argument --lr
  nodes: [1, 2]          # a key of the job file
"""

import difflib
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lumitui.app.job.fields.mapping_fields import When
from lumitui.app.job.setting import batch_argument, rate_argument, set_in
from lumitui.app.job.spec import JobSpec, changed, follower
from lumitui.remote.site.errors import InputError

MOST_RUNS = 100
"""Maximum number of runs: larger grids are usually a mistake, and always expensive."""
_LONGEST_NAME = 100
_NEAR = 0.8
"""Minimum similarity of a misspelled key, such as `node`, to a key of the job file."""
_ARGUMENT = re.compile(r"[A-Za-z][\w.-]*")
_EXAMPLE = "`lr: [1e-3, 3e-4]` is --lr"
_PER_RUN = frozenset({"name", "grid", "at_once", "then"})
_DEPENDENCY = re.compile(r"(?:^|\s)(?:--dep|-d)")


@dataclass(frozen=True)
class Cell:
    """One run of a job file."""

    spec: JobSpec
    """An ordinary job: it has neither grid nor followers."""
    settings: tuple[tuple[str, str], ...] = ()
    """Its own values in a grid: (`--lr`, `1e-3`)."""
    name: str = ""
    """Its name, if the job file has a sequence of jobs."""
    follows: When | None = None
    """Required end of the previous run; None if it does not wait for one."""

    @property
    def words(self) -> str:
        """Its name, or its settings in one line: `--lr=1e-3 nodes=2`."""
        return self.name or " ".join(f"{key}={value}" for key, value in self.settings)


def cells(spec: JobSpec) -> tuple[Cell, ...]:
    """Return the runs of `spec`, in the order of its lists or of `then:`; without both, one run.

    Raises:
        InputError: a key is unknown, a value is invalid, or there are too many runs.
    """
    if spec.at_once:
        _refuse_lanes(spec)
    if spec.then:
        return _sequence(spec)
    if not spec.grid:
        return (Cell(spec),)
    count = math.prod(len(values) for values in spec.grid.values())
    if count > MOST_RUNS:
        raise InputError(
            f"The grid has {count:,} runs, but lumitui sends at most {MOST_RUNS} together.",
            "Remove some values.",
            field="grid",
        )
    keys = [setting_of(spec, key) for key in spec.grid]
    combinations = enumerate(itertools.product(*spec.grid.values()), 1)
    runs = ((tuple(zip(keys, values, strict=True)), number) for number, values in combinations)
    return tuple(_cell(spec, *run) for run in runs)


def _sequence(spec: JobSpec) -> tuple[Cell, ...]:
    """Return the job itself, and those of `then:` in their order."""
    first = Cell(spec.model_copy(update={"then": {}}), name=spec.name)
    after = ((follower(spec, name), name, one.when) for name, one in spec.then.items())
    every = (first, *(Cell(job, name=name, follows=when) for job, name, when in after))
    message, hint = "", ""
    if spec.grid:
        message, hint = "`then:` and `grid:` cannot be combined.", "Remove one of them."
    elif any(_DEPENDENCY.search(option) for cell in every[1:] for option in cell.spec.sbatch):
        message = "`then:` and --dependency under `sbatch:` cannot be combined."
        hint = "Remove one of them; `after:` makes the first job wait for another run."
    if message:
        raise InputError(message, hint, field="then")
    return every


def _refuse_lanes(spec: JobSpec) -> None:
    """Raise unless runs of the grid can wait for each other through lumitui's own dependency."""
    if not spec.grid:
        message = "`at_once:` works only with `grid:`."
        hint = "Remove it, or add a grid."
    elif len(set(spec.grid.get("site", ()))) > 1:
        message = (
            "`at_once:` cannot hold back runs at several sites: each Slurm knows only its own jobs."
        )
        hint = "Send a grid for each site, or remove `at_once:`."
    elif any(_DEPENDENCY.search(option) for option in spec.sbatch):
        message = "`at_once:` and --dependency under `sbatch:` cannot be combined."
        hint = "Remove one of them; `after:` makes all runs wait for another run."
    else:
        return
    raise InputError(message, hint, field="at_once")


def setting_of(spec: JobSpec, key: str) -> str:
    """Return the setting of a grid's key: `nodes`, `env.X`, or `--lr` for `lr`.

    A name that is not a key of the job file is an argument of the script.

    Raises:
        InputError: a grid cannot vary this key, or it looks like a misspelled key.
    """
    if key.startswith("-"):
        return key
    first = key.split(".")[0]
    names = [name for name in JobSpec.model_fields if name not in _PER_RUN]
    if first in names:
        return key
    if first in _PER_RUN or not _ARGUMENT.fullmatch(key):
        raise InputError(
            f"`grid:` has the key {key}, which a grid cannot vary.",
            f"Use a key of the job file, or an argument of the script: {_EXAMPLE}.",
            field="grid",
        )
    same = [name for name in _arguments(spec) if _plain(name) == _plain(key)]
    if same:
        return same[0]
    near = difflib.get_close_matches(key, names, n=1, cutoff=_NEAR)
    if near:
        raise InputError(
            f"`grid:` has the key {key}, which is neither a key of a job file nor in `args:`.",
            f"Did you mean `{near[0]}`? If it is an argument of the script, write --{key}.",
            field="grid",
        )
    return f"--{key}"


def _arguments(spec: JobSpec) -> Iterator[str]:
    yield from (word.partition("=")[0] for word in spec.args if word.startswith("--"))
    yield from (name for name in (batch_argument(spec), rate_argument(spec)) if name)


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def _cell(spec: JobSpec, settings: tuple[tuple[str, str], ...], number: int) -> Cell:
    data: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True)
    del data["grid"]
    data.pop("at_once", None)
    for key, value in settings:
        set_in(data, key, value)
    data["name"] = _name(spec.name, settings, number)
    return Cell(changed(JobSpec.model_construct(), data, "grid"), settings)


def _name(name: str, settings: Sequence[tuple[str, str]], number: int) -> str:
    parts = (f"{key.split('.')[-1].lstrip('-')}{value}" for key, value in settings)
    suffix = "-".join(re.sub(r"[^\w.+-]+", "_", part) for part in parts)
    whole = f"{name}-{suffix}"
    return whole if len(whole) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 5]}-{number}"
