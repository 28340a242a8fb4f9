"""What `lumitui site add` prints."""

from pathlib import Path

import pytest

from lumitui.app.runs import WrittenProfile
from lumitui.app.survey.profile.surveys import Surveys
from tests.support.program.command_line import Here
from tests.support.replies.surveyed import SURVEY, site_of, text_from


def test_its_lines_break_at_spaces(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_from(SURVEY)
    site, left_out = site_of(text), ("partition closed: it is for other accounts than yours",)
    written = WrittenProfile(Path("/new.yaml"), site, site.unverified, left_out, text)
    monkeypatch.setattr(Surveys, "describe", lambda *_, **__: written)
    monkeypatch.setenv("COLUMNS", "60")
    done = here("site", "add", "new")
    rows = [*done.stderr.splitlines(), *done.stdout.splitlines()]
    assert max(map(len, rows)) <= 60
    said = " ".join(" ".join(rows).split())
    assert ", ".join(site.unverified) in said and left_out[0] in said


def test_a_profile_that_was_given_is_copied_and_not_added(here: Here) -> None:
    done = here("site", "add", "./breeze.yaml")
    assert done.returncode == 2
    assert "copy it to" in done.stderr and "sites/" in "".join(done.stderr.split())
