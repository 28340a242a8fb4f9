"""The recorded runs of templates/tour: the files of each, with their times. Pure.

Seconds count from the start of a run's job.
"""

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict

from lumitui.app.history.run import Run
from lumitui.app.job.launch import RankLayout
from lumitui.remote.scheduler.cluster_overview import Nodes
from lumitui.remote.site.states import State

_FILE = files("lumitui") / "templates" / "tour" / "runs.yaml"
_IMPORTS = 21.0
"""Seconds until a training run reports its start: Python, PyTorch, the first collective."""
_WARM_UP = 5
"""Number of slower first steps, which compile kernels."""
_LOG_EVERY = 2
_FIRST_NODE = 5210
_SHOWN = ("strategy", "model", "parameters", "world_size", "global_batch", "train_samples")
"""The fields that a training run prints at its start."""


class RecordedRun(BaseModel):
    """One run of the recording."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    job: str = ""
    """Its job file; "" for a resubmission of its parent."""
    cell: str = ""
    """Its settings in the job file's grid."""
    parent: str = ""
    nodes: int | None = None
    settings: tuple[str, ...] = ()
    """The changes from its parent."""
    note: str = ""
    sent: float
    waited: float
    ran: float
    """Minutes: sent before the recording opens, in the queue, running."""
    state: State = State.DONE
    exit: int = 0
    rank: int | None = None
    """The first rank that failed."""
    tail: str = ""
    """The end of its log, before the last line of a successful training."""
    speed: float
    """Samples per second."""
    loss: tuple[float, float]
    """Loss at the first step and at the end."""
    steps: int
    waits_for_data: float = 0.02
    """The share of a step spent waiting for data."""


class RecordedJobFile(BaseModel):
    """A job file of the recording, with facts about its training."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    parameters: int
    samples: int
    """Per epoch."""


class Recording(BaseModel):
    """The contents of templates/tour/runs.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    user: str
    project: str
    """Its folder below the site's scratch folder."""
    jobs: dict[str, RecordedJobFile]
    runs: tuple[RecordedRun, ...]
    partitions: tuple[tuple[str, str, str, str, int, int, int, int, int], ...]

    @property
    def nodes(self) -> tuple[Nodes, ...]:
        """The nodes of the cluster, by partition."""
        return tuple(Nodes(*row) for row in self.partitions)


def read_recording() -> Recording:
    """Return the bundled recording."""
    return Recording.model_validate(yaml.safe_load(_FILE.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class RecordedLine:
    """The lines that a training run has written by a time."""

    at: float
    metrics: str = ""
    log: str = ""


@dataclass(frozen=True)
class RecordedJob:
    """The job of a recorded run, as lumitui would have sent it."""

    facts: RecordedRun
    file: RecordedJobFile
    """The job file of the first run of its lineage."""
    run: Run
    opened: float
    """When the recording was opened, in epoch seconds."""

    @property
    def submitted(self) -> float:
        """The time of its submission, in epoch seconds."""
        return self.opened - 60 * self.facts.sent

    @property
    def started(self) -> float:
        """The time of its start, which may be in the future."""
        return self.submitted + 60 * self.facts.waited

    @property
    def ended(self) -> float:
        """The time of its end, which may be in the future."""
        return self.started + 60 * self.facts.ran

    @property
    def hosts(self) -> str:
        """Its nodes in Slurm's form."""
        last = _FIRST_NODE + self._layout.nodes - 1
        return _host(0) if last == _FIRST_NODE else f"nid[00{_FIRST_NODE}-00{last}]"

    @property
    def binding(self) -> str:
        """The probe's measurements, which match the plan."""
        layout = self._layout
        buses = [f"0000:{bus}:00.0" for bus in layout.gpu_bus]
        return json.dumps([
            {
                "rank": node * layout.ranks_per_node + local, "local_rank": local,
                "host": _host(node), "cores": cores,
                "gpus": ",".join(map(str, range(layout.gpus_per_node))),
                "devices": ",".join(buses), "device": buses[local] if buses else "",
            }
            for node in range(layout.nodes)
            for local, cores in enumerate(layout.planned_cores)
        ])  # fmt: skip

    @property
    def exit_file(self) -> str:
        """The job's exit file."""
        facts, ended = self.facts, round(self.ended)
        values = {"rc": facts.exit, "rank": facts.rank, "ended": ended, "job": self.run.job_id}
        return json.dumps(values | {"started": round(self.started)})

    @cached_property
    def lines(self) -> tuple[RecordedLine, ...]:
        """Everything that the training wrote, in order."""
        end = tuple(self._end())
        return (self._start(), *self._steps(60 * self.facts.ran), *end)

    @property
    def _layout(self) -> RankLayout:
        return self.run.layout

    @cached_property
    def _label(self) -> str:
        """The label of srun before each line of rank 0."""
        return f"{0:{len(str(self._layout.world_size - 1))}}: "

    def _start(self) -> RecordedLine:
        batch, model = self.run.global_batch or 1, self.facts.id.rpartition("-")[0]
        values = {
            "event": "start", "device": "cuda", "device_name": "AMD Instinct MI250X",
            "strategy": self.run.spec.strategy, "model": model,
            "parameters": self.file.parameters, "world_size": self._layout.world_size,
            "global_batch": batch, "epochs": 1, "train_samples": self.file.samples,
        }  # fmt: skip
        text = ", ".join(f"{name} {values[name]}" for name in _SHOWN)
        text += f", on {values['device_name']}"
        return RecordedLine(_IMPORTS, json.dumps(values), self._label + text)

    def _steps(self, most: float) -> Iterator[RecordedLine]:
        facts, chance = self.facts, random.Random(self.facts.id)
        first, last = facts.loss
        batch, at = self.run.global_batch or 1, _IMPORTS
        for step in range(1, facts.steps + 1):
            slow = 3.0 if step <= _WARM_UP else 1.0
            speed = facts.speed / slow * chance.gauss(1, 0.008)
            at += batch / speed
            if at > most:
                return
            loss = last + (first - last) * math.exp(-3.2 * step / facts.steps)
            loss *= chance.gauss(1, 0.006)
            values = {
                "step": step, "epoch": 1 + step * batch // self.file.samples,
                "loss": round(loss, 4), "samples_per_s": round(speed, 1),
                "seconds": round(at - _IMPORTS, 3),
                "data_s": round(facts.waits_for_data * batch / speed, 4),
            }  # fmt: skip
            epoch, logged = values["epoch"], step % _LOG_EVERY == 0
            text = f"step {step} | epoch {epoch} | loss {loss:.4f} | {speed:.0f} samples/s"
            yield RecordedLine(at, json.dumps(values), self._label + text if logged else "")

    def _end(self) -> Iterator[RecordedLine]:
        at = 60 * self.facts.ran - 1
        yield from (RecordedLine(at, log=line) for line in self.facts.tail.splitlines())
        if self.facts.state is State.DONE:
            yield RecordedLine(at, log=f"{self._label}not tested")


def _host(node: int) -> str:
    return f"nid{_FIRST_NODE + node:06d}"
