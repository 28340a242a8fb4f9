"""Profiles that are written: where a new one comes from, and what is unwise in one."""

from lumitui.remote.survey.doctor.profile_checks import lint
from lumitui.remote.survey.profile.proposal import Host

__all__ = ["Host", "lint"]
