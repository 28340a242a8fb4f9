"""The user's answers in the guide, kept in a file so that they can leave and continue."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lumitui.app.job.settings import Settings, write_whole


class GuideAnswers(BaseModel):
    """The answers; empty ones are missing."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    site: str = Field(default="", max_length=200)
    user: str = Field(default="", max_length=200)
    """The user name on the site."""
    account: str = Field(default="", max_length=200)
    """The project to bill."""
    key: str = Field(default="", max_length=4000)
    """The private key; empty: ssh's own choice."""
    checked: bool = False
    """Whether lumitui reached the site with these answers and checked its profile."""


def kept_progress(settings: Settings) -> GuideAnswers:
    """Return the kept answers; empty ones if the file is missing or invalid."""
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
    """Return the path of the user's own profile of `site`, which may not exist yet."""
    return settings.profiles[0] / f"{site}.yaml"
