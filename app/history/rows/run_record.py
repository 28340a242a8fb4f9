"""The record that a run's folder carries, from which a lost history is rebuilt. Pure.

It says what was known when the folder was made. What happened since is asked of the site.
"""

import json
from dataclasses import fields
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lumitui.app.history.rows.run_row import to_row
from lumitui.app.history.run import AGENT_TAG, Provenance, Run
from lumitui.app.job.launch import Price, RankLayout
from lumitui.app.job.settings import version
from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.reading.writer import is_newer
from lumitui.remote.site.states import State

FORMAT = 1
"""A reader refuses a later format; new keys need no new number, and it ignores them."""
REBUILT = "rebuilt from its folder"


def record_text(run: Run) -> str:
    """Return the record of `run` as JSON.

    The patch is left out: it may show files that are not shipped. Secrets are names only.
    """
    row: dict[str, Any] = dict(to_row(run))
    row["commit"] = row["git_commit"]
    row["dirty"] = run.provenance.dirty
    for name in ("spec", "layout", "price"):
        row[name] = json.loads(row[name])
    del row["spec"]["lumitui"]
    row["agent"] = AGENT_TAG in run.note.split(" ")
    record = {"format": FORMAT, "lumitui": version(), "folder": row["folder"]}
    record |= {name: row[name] for name in _Record.model_fields if name != "format"}
    return json.dumps(record, indent=1) + "\n"


def run_of(text: bytes, folder: str) -> Run:
    """Return the run in a record; its state is unknown.

    `folder` is where the record was found; nothing in the record can lead out of there.

    Raises:
        ValueError: it is not a record, or one of another folder; the message is one line.
    """
    try:
        data = _parsed(text)
        # Half a surrogate pair can be neither hashed nor sent.
        json.dumps(data, ensure_ascii=False).encode()
        if (
            isinstance(data, dict)
            and isinstance(data.get("format"), int)
            and data["format"] > FORMAT
        ):
            raise ValueError(f"a newer lumitui wrote it (format {data['format']})")
        entry = _Record.model_validate(data)
    except ValidationError as error:
        if isinstance(data, dict) and is_newer(writer := str(data.get("lumitui", ""))):
            raise ValueError(f"lumitui {writer}, a newer version, wrote it; upgrade") from error
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from error
    except (ValueError, RecursionError) as error:
        raise ValueError(str(error)[:200]) from error
    root, _, name = folder.rpartition("/runs/")
    if entry.id != name:
        raise ValueError(f"it is the record of {entry.id!r}")
    # Code is copied from below `root`, and old code is removed there: it must be in the work root.
    own = entry.root if _beside(entry.root, root) else root
    values = {name: value for name, value in entry if name in _RUN_FIELDS}
    return Run(
        **values | {"folder": folder, "root": own},
        provenance=Provenance(entry.commit, entry.branch, "", entry.dirty),
        state=State.UNKNOWN,
        reason=REBUILT,
        note=AGENT_TAG if entry.agent else "",
    )


_RUN_FIELDS = frozenset(item.name for item in fields(Run))
Short = Annotated[str, Field(max_length=4096)]
Number = Annotated[int, Field(ge=0, le=2**53)]


class _Record(BaseModel):
    """The fields of a record, in order of writing, each checked against a run's limits.

    A user or a broken job may have written it, so that the limits are narrower than `Run`'s.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    format: Literal[1]
    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,80}$")]
    name: Short
    site: Short
    created: Annotated[float, Field(ge=0, le=1e11)]
    parent: Short | None
    resumed_from: Short | None
    spec: JobSpec
    command: str
    layout: RankLayout
    price: Price
    global_batch: Number | None
    deepspeed_config: str | None
    project: Short
    job_file: Short | None
    root: Short
    token: Annotated[str, Field(pattern=r"^[0-9a-zA-Z]{1,64}$")]
    snapshot: Annotated[str, Field(pattern=r"^[0-9a-zA-Z_.-]{1,128}$")] | None
    commit: Short | None
    branch: Short | None
    dirty: bool
    script: str
    machinery: str | None = None
    probe: str | None = None
    agent: bool = False
    """Whether an agent sent it: the only part of the note that a lost history gets back."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        """Refuse numbers that would make tables of millions of ranks."""
        layout = self.layout
        sizes = [layout.ranks_per_node, layout.tasks_per_node, layout.gpus_per_node]
        sizes += [layout.cpus_per_task, len(layout.masks), len(layout.planned_cores)]
        if layout.nodes != self.spec.nodes or not all(0 <= size <= 1024 for size in sizes):
            raise ValueError("the layout differs from the job file's")
        return self


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _beside(root: str, own: str) -> bool:
    """Whether `root` is a project's folder in the same work root as `own`."""
    work, _, project = root.rpartition("/")
    return work == own.rpartition("/")[0] and project not in ("", ".", "..")
