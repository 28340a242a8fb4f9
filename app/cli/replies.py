"""What `--json` prints, by verb, as types: `lumitui schema --reply VERB` shows their JSON Schema.

Imported for that alone, and by the tests, which hold what each verb prints against its type.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, TypeAdapter

from lumitui.app.cli.views.diff import Difference
from lumitui.app.cli.views.why_page import WhyReply
from lumitui.app.explain.proof.binding_proof import Verdict
from lumitui.app.job.launch import LaunchFile, Price, RankLayout
from lumitui.app.runs import (
    Answered,
    AttemptRecord,
    Diagnosis,
    Explained,
    FetchOutcome,
    Finding,
    Image,
    ImportNote,
    PassedOver,
    Pruned,
    RankBinding,
    RemovedItems,
    RemovedVenvs,
    Scaling,
    Site,
    SizeAdvice,
    State,
    Stock,
    Summary,
    Suspect,
    Sweep,
    Topic,
    Venv,
)
from lumitui.app.runs.rulebook import RuleExample


@dataclass(frozen=True)
class RunData:
    """A run."""

    id: str
    name: str
    state: State
    word: str
    reason: str
    rc: int | None
    failed_rank: int | None
    site: str
    partition: str
    job_id: str | None
    parent: str | None
    resumed_from: str | None
    nodes: int
    ranks: int
    gpus: int
    nodes_used: str
    global_batch: int | None
    price: Price
    billed: float
    time_limit: str
    chain: int
    attempts: tuple[AttemptRecord, ...]
    created: float
    submitted: float | None
    started: float | None
    ended: float | None
    expected_start: float | None
    expected_end: float | None
    updated: float
    attempt: int
    folder: str
    project: str
    job_file: str | None
    snapshot: str | None
    commit: str | None
    branch: str | None
    dirty: bool
    note: str


@dataclass(frozen=True)
class Listed(RunData):
    """A run of `status`."""

    stale: bool


@dataclass(frozen=True)
class Status:
    """`status`."""

    runs: list[Listed]
    warnings: list[str]


@dataclass(frozen=True)
class MemberReply:
    """One of a series, and what became of it."""

    place: int
    settings: str
    run: str | None
    error: str | None
    already: str | None
    """Where and when another laptop sent it."""


@dataclass(frozen=True)
class Sent:
    """A grid or a ladder."""

    series: str
    runs: list[RunData]
    members: list[MemberReply]


@dataclass(frozen=True)
class ProfileReply:
    """`site add`."""

    path: str
    guessed: list[str]
    left_out: list[str]


@dataclass(frozen=True)
class Begun:
    """`new`."""

    path: str
    findings: list[Finding]
    files: list[str]


@dataclass(frozen=True)
class ExampleReply:
    """A row of `new --list`."""

    name: str
    group: str
    summary: str


@dataclass(frozen=True)
class Adopted:
    """`import`."""

    path: str
    kept: list[ImportNote]
    derived: list[ImportNote]
    changed: list[ImportNote]
    lost: list[ImportNote]


@dataclass(frozen=True)
class CellReply:
    """One run of a grid in `preview`."""

    name: str
    settings: str
    price: Price


@dataclass(frozen=True)
class CodeSize:
    """How much code is sent."""

    files: int
    bytes: int


@dataclass(frozen=True)
class Previewed:
    """`preview`."""

    command: str
    script: str
    findings: list[Finding]
    code: CodeSize
    kept_back: list[Suspect]
    shipped_secrets: list[Suspect]
    price: Price
    layout: RankLayout
    global_batch: int | None
    files: list[LaunchFile]


@dataclass(frozen=True)
class PreviewedGrid(Previewed):
    """`preview` of a grid."""

    runs: list[CellReply]


@dataclass(frozen=True)
class FixReply:
    """`fix`."""

    written: bool
    diff: str
    fixed: list[Finding]
    left: list[Finding]


@dataclass(frozen=True)
class ExportReply:
    """`export`."""

    path: str
    files: int


@dataclass(frozen=True)
class HistoryFile:
    """`history --check`."""

    path: str
    schema: int
    size: int
    runs: int
    damage: str | None
    lost_texts: int | None


@dataclass(frozen=True)
class RecoveryReply:
    """`history --recover`."""

    site: str
    roots: list[str]
    rebuilt: list[RunData]
    known: int
    passed_over: list[PassedOver]
    warnings: list[str]


@dataclass(frozen=True)
class RunReply:
    """`show`."""

    run: RunData
    job: dict[str, JsonValue]
    command: str
    script: str
    files: Mapping[str, str]
    patch: str
    lineage: list[RunData]
    proof: Verdict
    metrics: Summary
    log_metrics: Mapping[str, list[float]]
    broken_metrics: int
    why: list[Diagnosis]
    warnings: list[str]


@dataclass(frozen=True)
class Compared:
    """`scaling`."""

    scaling: Scaling
    advice: SizeAdvice


@dataclass(frozen=True)
class ScriptReply:
    """A script of `lint`."""

    script: str
    site: str | None
    findings: list[Finding]


@dataclass(frozen=True)
class RuleReply:
    """`rules ID`."""

    rule: Topic
    example: RuleExample | None


@dataclass(frozen=True)
class Probed:
    """`site check --probe`."""

    run: str
    host: str
    changes: dict[str, JsonValue]
    notes: list[str]
    path: str
    diff: str


@dataclass(frozen=True)
class Images:
    """`site images`."""

    at: float
    images: list[Image]
    unknown: list[Image]


REPLIES: dict[str, Any] = {
    "new": Begun | list[ExampleReply],
    "import": Adopted,
    "preview": PreviewedGrid | Previewed,
    "fix": FixReply,
    "export": ExportReply,
    "submit": RunData | Sent,
    "status": Status,
    "history": list[RunData] | HistoryFile | RecoveryReply,
    "show": RunReply,
    "why": WhyReply,
    "note": RunData,
    "diff": Difference,
    "cancel": RunData,
    "wait": list[RunData],
    "fetch": FetchOutcome,
    "resubmit": RunData | Sent,
    "scaling": Compared,
    "grid": Sweep,
    "lint": list[ScriptReply],
    "rules": list[Topic] | RuleReply,
    "bind": list[RankBinding] | Explained,
    "site show": list[Site] | Site,
    "site add": ProfileReply,
    "site check": list[Finding] | Probed,
    "site live": Answered,
    "site images": Images,
    "site venvs": dict[str, list[Venv]] | dict[str, RemovedVenvs],
    "site data": list[Stock] | list[RemovedItems],
    "site prune": dict[str, Pruned],
}
"""What is in `data` of the envelope, by verb."""


def reply_schema(verb: str) -> dict[str, Any]:
    """Return the JSON Schema of all that `verb --json` prints: the envelope with data or error.

    Raises:
        KeyError: the verb has no `--json`.
    """
    found = TypeAdapter(REPLIES[verb]).json_schema(mode="serialization")
    kinds = found.pop("$defs", {})
    for kind in (found, *kinds.values()):
        if "properties" in kind:
            kind["additionalProperties"] = False
    text = {"type": "string"}
    error = {"message": text, "hint": text, "exit_code": {"type": "integer"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"lumitui {verb} --json",
        "type": "object",
        "properties": {
            "lumitui": text,
            "verb": {"const": verb},
            "data": found,
            "error": {
                "type": "object",
                "properties": error,
                "required": [*error],
                "additionalProperties": False,
            },
        },
        "required": ["lumitui", "verb"],
        "additionalProperties": False,
        "$defs": kinds,
    }
