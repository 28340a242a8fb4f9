"""The steps of the guide: which are done, and what each one does or needs. Pure."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lumitui.app.runs.guide.guide_answers import GuideAnswers
from lumitui.app.runs.guide.ssh_keys import Key
from lumitui.remote.site.profile import Site

Mark = Literal["done", "next", "later"]
FIRST_LINE = "# Written by lumitui's guide, which may write it again."
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Surroundings:
    """The state before the guide does anything."""

    site: Site | None
    """The chosen site."""
    profile: Path
    """The path of the user's own profile of it, which may not exist yet."""
    foreign: bool
    """Whether that profile exists and the guide did not write it; then the guide keeps it."""
    keys: Sequence[Key]


@dataclass(frozen=True)
class GuideStep:
    """One step: whether it is done, and a text about what it does or needs."""

    name: str
    mark: Mark
    words: str


def steps(progress: GuideAnswers, around: Surroundings) -> tuple[GuideStep, ...]:
    """Return the steps in order; the first that is not done is the next one."""
    site = around.site
    rows = [("site", site is not None, _about(site))]
    if around.foreign:
        words = f"Set in {_short(around.profile)}, which the guide does not change."
        rows += [("user", site is not None, words), ("key", site is not None, words)]
    else:
        user = _USER.fullmatch(progress.user) is not None
        words = "This is not a user name."
        if user or not progress.user:
            words = "Your user name on the login node."
        rows.append(("user", user, words))
        rows.append(("key", _has_key(progress, around.keys), _key_words(progress, around)))
    rows.append(("project", has_account(progress, site), _account_words(progress, site)))
    rows.append(("check", progress.checked, _check_words(around)))
    rows.append(("job", False, "Writes lumitui-first/job.yaml here and opens it. Sends nothing."))
    first = next((i for i, (_, done, _) in enumerate(rows) if not done), len(rows))
    marks: list[Mark] = [
        "done" if done else "next" if i == first else "later" for i, (_, done, _) in enumerate(rows)
    ]
    return tuple(
        GuideStep(name, mark, words) for (name, _, words), mark in zip(rows, marks, strict=True)
    )


def missing(steps: Sequence[GuideStep], name: str) -> str:
    """Return the first step that must be done before the step `name`; "" if there is none."""
    for step in steps:
        if step.name == name:
            return ""
        if step.mark != "done":
            return step.name
    return ""


def profile_text(progress: GuideAnswers) -> str:
    """Return the profile that the guide writes: the built-in one, with the user's login."""
    lines = [FIRST_LINE, f"extends: {json.dumps(progress.site)}", "hosts:"]
    lines.append(f"  user: {json.dumps(progress.user)}")
    if progress.key:
        lines.append(f"  identity: {json.dumps(progress.key)}")
    return "\n".join(lines) + "\n"


def has_account(progress: GuideAnswers, site: Site | None) -> bool:
    """Return whether the project has the site's form, or the site needs none."""
    return site is not None and not site.account.objection(progress.account)


def _about(site: Site | None) -> str:
    if site is None:
        return "Choose a cluster. For a new one, lumitui first surveys it and writes its profile."
    return f"{site.title}, at {site.hosts.login}."


def _has_key(progress: GuideAnswers, keys: Sequence[Key]) -> bool:
    return bool(progress.key) and any(str(key.path) == progress.key for key in keys)


def _key_words(progress: GuideAnswers, around: Surroundings) -> str:
    if not around.keys:
        return (
            "There is no key in ~/.ssh. Create one with `ssh-keygen -t ed25519`; then give its "
            ".pub file to the site."
        )
    for key in around.keys:
        if str(key.path) == progress.key:
            return f"{key.kind} {key.comment}. The site must know {key.path.name}.pub."
    count = f"{len(around.keys)} keys" if len(around.keys) > 1 else "one key"
    return f"Choose yours: ~/.ssh has {count}. The guide creates no key, and reads none yet."


def _account_words(progress: GuideAnswers, site: Site | None) -> str:
    if site is None:
        return "The project to bill."
    if not site.account.required:
        return f"{site.title} needs none."
    if progress.account and not has_account(progress, site):
        return f"This is not a project of the site. One looks like {site.account.example}."
    return f"The project to bill, like {site.account.example}."


def _short(path: Path) -> str:
    home = str(Path.home())
    return str(path).replace(home, "~", 1) if str(path).startswith(f"{home}/") else str(path)


def _check_words(around: Surroundings) -> str:
    begin = "Logs" if around.foreign else f"Writes {_short(around.profile)}, then logs"
    host = around.site.hosts.login if around.site else "the site"
    return f"{begin} in to {host} and compares it with its profile. Changes nothing there."
