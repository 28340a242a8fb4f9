"""`notify:` of the settings file: the channels of notifications."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

from lumitui.app.follow.notifications.events import Happened
from lumitui.remote.site.reading.validation import validate
from lumitui.remote.site.reading.yaml_document import read_document
from lumitui.remote.site.webhook_address import check_webhook

Terminal = Literal["osc9", "osc777", "off"]


class Notify(BaseModel):
    """Where notifications go besides the TUI."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    terminal: Terminal = "osc9"
    """The escape sequence for a terminal that reports that it is in the background."""
    webhook: str = ""
    """Webhook address; receives a small JSON object for each event."""
    events: tuple[Happened, ...] = tuple(Happened)
    """The events."""

    @field_validator("webhook")
    @classmethod
    def _private(cls, value: str) -> str:
        if value:
            check_webhook(value)
        return value


class _SettingsFile(BaseModel):
    notify: Notify | None = None


def read_notify(files: Iterable[Path]) -> Notify:
    """Return `notify:` of the settings files; for each key the first file that has it counts.

    Raises:
        InputError: a file cannot be read, or has a mistake.
    """
    found = Notify()
    for file in reversed([one for one in files if one.exists()]):
        document = read_document(file)
        keys = "`lumitui docs notifications` lists the keys."
        own = validate(document, _SettingsFile, document.data, keys).notify or Notify()
        found = found.model_copy(update={key: getattr(own, key) for key in own.model_fields_set})
    return found
