"""Excerpts of failure logs from public threads, each with its cause, and lines that are no failure.

State and exit code are what Slurm says of such an end; where the thread does not say it, `failed`.
"""

import hashlib
from functools import cache
from pathlib import Path

import yaml
from pydantic import BaseModel, TypeAdapter, field_validator

from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import Diagnosis, RunEnd
from lumitui.remote.site.states import State

_HERE = Path(__file__).parent


class Excerpt(BaseModel, frozen=True):
    """The telling lines of one public log."""

    id: str
    source: str
    cause: str
    state: str = "failed"
    exit_code: int = 1
    lines: tuple[str, ...]

    @field_validator("lines", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Return the lines of a text: a long excerpt is written as one block."""
        return tuple(value.splitlines()) if isinstance(value, str) else value

    @property
    def held_out(self) -> bool:
        """Whether it is in the half that no rule was tuned on."""
        return hashlib.sha256(self.id.encode()).digest()[0] % 2 == 1

    def found(self, *, slurm: bool, before: str = "") -> Diagnosis:
        """Return the first diagnosis, with Slurm's words or from the log alone."""
        state = State(self.state.replace("-", " ")) if slurm else State.FAILED
        rc = self.exit_code if slurm and self.exit_code else None
        log = before + "\n".join(self.lines) + "\n"
        return diagnose(RunEnd(state, state.name if slurm else "", "", rc, None, log))[0]


@cache
def excerpts() -> tuple[Excerpt, ...]:
    """Return all excerpts."""
    kind = TypeAdapter(list[Excerpt])
    files = sorted((_HERE / "logs").rglob("*.yaml"))
    return tuple(item for file in files for item in kind.validate_python(_of(file)))


@cache
def rewritten() -> tuple[Excerpt, ...]:
    """Return logs that were written after public threads, and hold no line of them."""
    kind = TypeAdapter(list[Excerpt])
    files = sorted((_HERE / "rewritten").glob("*.yaml"))
    return tuple(item for file in files for item in kind.validate_python(_of(file)))


@cache
def asked_once() -> tuple[Excerpt, ...]:
    """Return the logs of which no rule has learnt, written like those of `rewritten`."""
    kind = TypeAdapter(list[Excerpt])
    files = sorted((_HERE / "rewritten" / "asked_once").glob("*.yaml"))
    return tuple(item for file in files for item in kind.validate_python(_of(file)))


@cache
def wordings() -> dict[str, list[str]]:
    """Return messages by the cause that they have: as sources print them, and their forms."""
    found: dict[str, list[str]] = {}
    for file in (_HERE / "wordings.yaml", *sorted((_HERE / "families").glob("*.yaml"))):
        for cause, lines in TypeAdapter(dict[str, list[str]]).validate_python(_of(file)).items():
            found.setdefault(cause, []).extend(lines)
    return found


@cache
def benign() -> tuple[str, ...]:
    """Return lines that programs print and that ended nothing."""
    return tuple(TypeAdapter(list[str]).validate_python(_of(_HERE / "benign.yaml")))


@cache
def benign_logs() -> tuple[str, ...]:
    """Return 50 whole logs of trainings that went well: each line above, some trouble, steps.

    Every fourth got over a fault that it printed with its traceback.
    """
    lines = benign()
    return tuple(_log_of_success(lines, seed) for seed in range(50))


@cache
def got_over() -> tuple[str, ...]:
    """Return logs of jobs that failed without a word, after they had got over what they show."""
    return tuple(TypeAdapter(list[str]).validate_python(_of(_HERE / "got_over.yaml")))


_GOT_OVER = """\
Traceback (most recent call last):
  File "train.py", line 88, in step
    loss = model(batch)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
halving the batch"""


def _log_of_success(lines: tuple[str, ...], seed: int) -> str:
    """Return a log: ten of `lines`, 60 steps, and what the rank 0 says at the end."""
    told = [lines[(seed * 7 + 11 * at) % len(lines)] for at in range(10)]
    fault = _GOT_OVER.splitlines() if seed % 4 == 0 else []
    steps = [f"step {at} loss {1 / (at + 1):.4f} lr 0.001" for at in range(1, 61)]
    log = [*told[:4], *steps[:20], *fault, *told[4:8], *steps[20:40], *told[8:], *steps[40:]]
    return "\n".join([*log, "Training finished in 12 min 4 s; checkpoint saved."]) + "\n"


def _of(file: Path) -> object:
    return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
