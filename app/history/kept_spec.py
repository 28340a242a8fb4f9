"""A run's job file as history keeps it; it is validated when more is asked than lists show."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from lumitui.remote.site.errors import HistoryError
from lumitui.remote.site.reading.writer import HINT, is_newer, newer_words

if TYPE_CHECKING:
    from lumitui.app.job.spec import JobSpec


class Brief(Protocol):
    """What lists show of a job file."""

    @property
    def partition(self) -> str:
        """Where in the site it runs."""
        ...

    @property
    def account(self) -> str:
        """The project that pays; `none` where there is none."""
        ...

    @property
    def time(self) -> str:
        """The time limit."""
        ...

    @property
    def chain(self) -> int:
        """How many time limits it may take."""
        ...

    @property
    def proof(self) -> str:
        """Whether the binding is measured: `on`, `strict` or `off`."""
        ...


class KeptSpec:
    """The JSON of a job file, written by this version or by another one."""

    def __init__(self, text: str | bytes) -> None:
        """Take JSON.

        Raises:
            ValueError: it is none, or lacks what lists show; the message names the field.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise ValueError(f"spec: Invalid JSON: {error}") from error
        if not isinstance(data, dict):
            raise ValueError("spec: Input should be an object")
        self.partition = _word(data, "partition")
        self.account = _word({"account": "none"} | data, "account")
        self.proof = _word({"proof": "on"} | data, "proof")
        self.time = _word(data, "time")
        chain = data.get("chain", 1)
        if not isinstance(chain, int) or chain < 1:
            raise ValueError("spec.chain: Input should be a positive number")
        self.chain = chain
        self.writer = str(data.pop("lumitui", ""))
        self._data = data

    @cached_property
    def spec(self) -> JobSpec:
        """All of it.

        Raises:
            ValueError: another version wrote it; the message names the field.
        """
        # Late: with pydantic it takes twice as long as all else that a list needs.
        from pydantic import ValidationError

        from lumitui.app.job.spec import JobSpec

        try:
            return JobSpec.model_validate_json(json.dumps(self._data))
        except ValidationError as error:
            if is_newer(self.writer):
                raise ValueError(newer_words("spec", self.writer)) from error
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, ("spec", *first["loc"])))
            raise ValueError(f"{place}: {first['msg']}") from error


class LateSpec:
    """The field of a run that is given a job file or a kept one, and is always a job file.

    The standard library documents such fields: docs.python.org/3/library/dataclasses.html,
    "Descriptor-typed fields".
    """

    def __get__(self, run: object | None, owner: type) -> JobSpec:
        """Return the job file.

        Raises:
            HistoryError: another version wrote it.
        """
        if run is None:
            raise AttributeError("the field has no default")
        held: JobSpec | KeptSpec = vars(run)["spec"]
        if not isinstance(held, KeptSpec):
            return held
        try:
            return held.spec
        except ValueError as error:
            who = vars(run)["id"]
            if is_newer(held.writer):
                raise HistoryError(newer_words(f"The run {who}", held.writer), HINT) from error
            raise HistoryError(
                f"The run {who} was written by another version and cannot be read: {error}",
                "Use the newest lumitui, or resubmit the run's job file.",
            ) from error

    def __set__(self, run: object, value: JobSpec | KeptSpec) -> None:
        """Keep what the run is made with."""
        vars(run)["spec"] = value


def _word(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise ValueError(f"spec.{name}: Input should be a valid string")
    return value
