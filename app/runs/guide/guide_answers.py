"""What a user has answered to the guide so far; it is kept, so that they can leave and go on."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lumitui.app.job.settings import Settings, write_whole


class GuideAnswers(BaseModel):
    """The answers; an empty one was not given yet."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    site: str = Field(default="", max_length=200)
    user: str = Field(default="", max_length=200)
    """The name on the site."""
    account: str = Field(default="", max_length=200)
    """Project that pays."""
    key: str = Field(default="", max_length=4000)
    """The private key; empty: as ssh itself would choose."""
    checked: bool = False
    """Whether the site was reached with these answers, and told what its profile is like."""


def kept_progress(settings: Settings) -> GuideAnswers:
    """Return what was answered; nothing, if the file is not there or makes no sense."""
    try:
        return GuideAnswers.model_validate_json(settings.guide.read_bytes()[:100_000])
    except (OSError, ValidationError, json.JSONDecodeError):
        return GuideAnswers()


def keep_progress(settings: Settings, progress: GuideAnswers) -> None:
    """Write the answers.

    Raises:
        OSError: they cannot be written.
    """
    write_whole(settings.guide, progress.model_dump_json() + "\n")


def own_profile(settings: Settings, site: str) -> Path:
    """Return the file in which the user's own profile of `site` is, or would be."""
    return settings.profiles[0] / f"{site}.yaml"
