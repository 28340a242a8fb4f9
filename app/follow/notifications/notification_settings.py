"""`notify:` of the settings file: where the user wants to be told what happens to runs."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from lumitui.app.follow.notifications.events import Happened
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.yaml_document import read_document
from lumitui.remote.site.webhook_address import check_webhook

Terminal = Literal["osc9", "osc777", "off"]


class Notify(BaseModel):
    """Where notices go besides the TUI itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    terminal: Terminal = "osc9"
    """The escape sequence for a terminal that says it is not in front."""
    webhook: str = ""
    """An address that gets a small JSON object for each event."""
    events: tuple[Happened, ...] = tuple(Happened)
    """What is told."""

    @field_validator("webhook")
    @classmethod
    def _private(cls, value: str) -> str:
        if value:
            check_webhook(value)
        return value


def read_notify(file: Path) -> Notify:
    """Return `notify:` of a settings file; what it does not say, or no file, has its default.

    Raises:
        InputError: it cannot be read, or a value is wrong.
    """
    if not file.exists():
        return Notify()
    document = read_document(file)
    try:
        return Notify.model_validate(document.data.get("notify") or {})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ("notify", *first["loc"])
        key = ".".join(str(part) for part in place)
        fault = first["msg"].removeprefix("Value error, ")
        raise InputError(
            f"{document.where(place)}: {key}: {fault}.", "Correct it and start again."
        ) from error
