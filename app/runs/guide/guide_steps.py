"""The steps of the guide: what is done, what is missing, and what each step will do. Pure."""

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
    """What is there before the guide does anything."""

    site: Site | None
    """The chosen one."""
    profile: Path
    """Where the user's own profile of it is, or would be."""
    foreign: bool
    """Whether that profile is there and was not written by the guide: it is left alone."""
    keys: Sequence[Key]


@dataclass(frozen=True)
class GuideStep:
    """One step: whether it is done, and in words what will happen or what is missing."""

    name: str
    mark: Mark
    words: str


def steps(progress: GuideAnswers, around: Surroundings) -> tuple[GuideStep, ...]:
    """Return the steps in their order; the first that is not done is the next one."""
    site, found = around.site, []
    found.append(("site", site is not None, _about(site)))
    if around.foreign:
        words = f"As {_short(around.profile)} says; the guide does not touch it."
        found += [("user", site is not None, words), ("key", site is not None, words)]
    else:
        user = _USER.fullmatch(progress.user) is not None
        words = "Your name on the login node." if user or not progress.user else "No such name."
        found.append(("user", user, words))
        found.append(("key", _has_key(progress, around.keys), _key_words(progress, around)))
    found.append(("project", has_account(progress, site), _account_words(progress, site)))
    found.append(("check", progress.checked, _check_words(around)))
    found.append(
        ("job", False, "Makes lumitui-first/job.yaml here, and opens it. Nothing is sent yet.")
    )
    first = next((i for i, (_, done, _) in enumerate(found) if not done), len(found))
    marks: list[Mark] = [
        "done" if done else "next" if i == first else "later"
        for i, (_, done, _) in enumerate(found)
    ]
    return tuple(
        GuideStep(name, mark, words) for (name, _, words), mark in zip(found, marks, strict=True)
    )


def missing(found: Sequence[GuideStep], wanted: str) -> str:
    """Return the first step that must be done before `wanted`; "" if there is none."""
    for step in found:
        if step.name == wanted:
            return ""
        if step.mark != "done":
            return step.name
    return ""


def profile_text(progress: GuideAnswers) -> str:
    """Return the profile that the guide writes: the built-in one, with this person's login."""
    lines = [FIRST_LINE, f"extends: {json.dumps(progress.site)}", "hosts:"]
    lines.append(f"  user: {json.dumps(progress.user)}")
    if progress.key:
        lines.append(f"  identity: {json.dumps(progress.key)}")
    return "\n".join(lines) + "\n"


def has_account(progress: GuideAnswers, site: Site | None) -> bool:
    """Return whether the project is one that the site would know, or the site needs none."""
    if site is None:
        return False
    return not site.account.objection(progress.account)


def _about(site: Site | None) -> str:
    if site is None:
        return "Choose a cluster. Another one is surveyed first, which writes its profile."
    return f"{site.title}, at {site.hosts.login}."


def _has_key(progress: GuideAnswers, keys: Sequence[Key]) -> bool:
    return bool(progress.key) and any(str(key.path) == progress.key for key in keys)


def _key_words(progress: GuideAnswers, around: Surroundings) -> str:
    if not around.keys:
        return (
            "There is no key in ~/.ssh. `ssh-keygen -t ed25519` makes one; then give its .pub file "
            "to the site."
        )
    for key in around.keys:
        if str(key.path) == progress.key:
            return f"{key.kind} {key.comment}. The site must know {key.path.name}.pub."
    found = f"{len(around.keys)} keys" if len(around.keys) > 1 else "one key"
    return f"Choose yours: ~/.ssh has {found}. None is made, and none is read yet."


def _account_words(progress: GuideAnswers, site: Site | None) -> str:
    if site is None:
        return "Project that pays."
    if not site.account.required:
        return f"{site.title} asks for none."
    if progress.account and not has_account(progress, site):
        return f"This is not a project there. One looks like {site.account.example}."
    return f"The project that pays, like {site.account.example}."


def _short(path: Path) -> str:
    home = str(Path.home())
    return str(path).replace(home, "~", 1) if str(path).startswith(f"{home}/") else str(path)


def _check_words(around: Surroundings) -> str:
    written = "" if around.foreign else f"Writes {_short(around.profile)}, then logs "
    host = around.site.hosts.login if around.site else "the site"
    return f"{written or 'Logs '}in to {host} and compares it with its profile. It changes nothing."
