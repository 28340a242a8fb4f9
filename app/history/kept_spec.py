"""A run's job file as stored in the history, validated only if all of it is needed."""

import json
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

from lumitui.app.history.strict import check_of
from lumitui.remote.site.errors import HistoryError
from lumitui.remote.site.reading.writer import HINT, is_newer, newer_words

if TYPE_CHECKING:
    from lumitui.app.job.spec import JobSpec


@dataclass(frozen=True)
class Brief:
    """The keys of a job file shown in lists, with their defaults."""

    partition: str
    """Where in the site it runs."""
    time: str
    """The time limit."""
    account: str = "none"
    """The project to bill, or `none`."""
    chain: int = 1
    """How many time limits it may take."""
    proof: str = "on"
    """Whether the binding is measured: `on`, `strict` or `off`."""


_BRIEF = check_of(Brief)


class KeptSpec:
    """The JSON of a job file that any version may have written."""

    def __init__(self, text: str | bytes) -> None:
        """Take JSON; ValueError, with the field, if it is invalid or lacks a key of `Brief`."""
        try:
            data = json.loads(text)
        except (ValueError, TypeError) as error:
            raise ValueError(f"spec: Invalid JSON: {error}") from error
        self.brief: Brief = _BRIEF(data, "spec")
        self.writer = str(data.pop("lumitui", ""))
        self.metrics = bool(data.get("metrics"))
        after = data.get("after")
        self.awaited: tuple[str, ...] = tuple(after.get("run", ())) if after else ()
        self._data = data

    @cached_property
    def spec(self) -> "JobSpec":
        """The whole job file; ValueError, with the field, if another version wrote it."""
        # Imported late: pydantic takes twice as long as everything else that a list needs.
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


def brief_of(spec: "JobSpec | KeptSpec") -> Brief:
    """Return the keys of a job file, stored or new, that lists show."""
    if isinstance(spec, KeptSpec):
        return spec.brief
    return Brief(**{item.name: getattr(spec, item.name) for item in fields(Brief)})


class LateSpec:
    """A run's field that accepts a job file or a stored one, and always returns a job file.

    The standard library documents such fields: docs.python.org/3/library/dataclasses.html,
    "Descriptor-typed fields".
    """

    def __get__(self, run: object | None, owner: type) -> "JobSpec":
        """Return the job file; HistoryError if another version wrote it."""
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

    def __set__(self, run: object, value: "JobSpec | KeptSpec") -> None:
        """Store the value the run is created with."""
        vars(run)["spec"] = value
