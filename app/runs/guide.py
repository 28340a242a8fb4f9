"""The first steps: the demo on this machine, or a site, a key, a check and a first job."""

import importlib.util
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lumitui.app.job import examples
from lumitui.app.job.settings import Settings, install_hint, write_whole
from lumitui.app.launch.from_script.own_scripts import files_here
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites

DEMO_FOLDER = Path("lumitui-demo")
"""The demo's folder, relative to the current one."""


def this_machine() -> Site:
    """Return the built-in site that runs jobs as plain processes."""
    sites = Sites([BUILT_IN])
    return next(site for site in map(sites.load, sites.names()) if site.scheduler == "process")


def prepare_demo(folder: Path) -> Path:
    """Return the demo's job file in `folder`; create it if it is missing.

    Raises:
        InputError: this Python lacks torch, and LUMITUI_PYTHON is not set.
        LumiError: the folder cannot be created.
    """
    # Without LUMITUI_PYTHON, a job on this machine uses this Python (supervisor.py).
    if not os.environ.get("LUMITUI_PYTHON") and importlib.util.find_spec("torch") is None:
        raise InputError(
            "The demo needs PyTorch, which this Python lacks.",
            f"{install_hint('torch')} Or set LUMITUI_PYTHON to a Python with torch.",
        )
    job = folder / "job.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LumiError(
            f"Cannot create the folder {folder}: {error.strerror}.", "Choose another one with --to."
        ) from error
    if not job.exists():
        text = examples.text_for(this_machine(), examples.Beginning("demo"))
        examples.write_new(job, text)
    return job


FIRST_FOLDER = Path("lumitui-first")
"""The first job's own folder, relative to the current one: a job sends its whole folder."""


def own_script(folder: Path) -> str:
    """Return the name of the user's training script in `folder`; "" if none or several exist."""
    names = [path.name for path in files_here(folder)[1] if path.suffix == ".py"]
    return "train.py" if "train.py" in names else names[0] if len(names) == 1 else ""


def first_job(site: Site, account: str, folder: Path, script: str = "") -> Path:
    """Return the job file of a script in `folder`, or of an example; create it if it is missing.

    Raises:
        LumiError: it cannot be written.
    """
    job = (folder if script else folder / FIRST_FOLDER) / "job.yaml"
    try:
        job.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LumiError(
            f"Cannot create the folder {job.parent}: {error.strerror}.",
            "Start lumitui in one of your own folders.",
        ) from error
    if not job.exists():
        name = Path(script).stem if script else "first"
        choices = examples.Beginning(name, account=account or None, script=script or None)
        text = examples.text_for(site, choices)
        examples.write_new(job, text)
    return job


class GuideAnswers(BaseModel):
    """The user's answers in the guide; empty ones are missing."""

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
    """Return the stored answers; empty ones if the file is missing or invalid."""
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


_MOST_BYTES = 20_000
_KINDS = ("ssh-", "ecdsa-", "sk-")
"""Prefixes of the first word of a public key."""


@dataclass(frozen=True)
class Key:
    """A private key with its public key beside it."""

    path: Path
    """The private key."""
    kind: str
    """The public key's type, such as `ssh-ed25519`."""
    comment: str


def keys_in(folder: Path) -> tuple[Key, ...]:
    """Return the keys in `folder`, by name; opens only the public ones."""
    try:
        return tuple(filter(None, map(_key, sorted(folder.glob("*.pub")))))
    except OSError:
        return ()


def _key(public: Path) -> Key | None:
    private = public.with_suffix("")
    try:
        if not private.is_file() or not public.is_file():
            return None
        descriptor = os.open(public, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            words = file.read(_MOST_BYTES).decode("utf-8", "replace").split(maxsplit=2)
    except OSError:
        return None
    if len(words) < 2 or not words[0].startswith(_KINDS) or "cert" in words[0]:
        return None
    comment = words[2].splitlines()[0].strip() if len(words) > 2 else ""
    return Key(private, words[0], comment)


Mark = Literal["done", "next", "later"]
FIRST_LINE = "# Written by lumitui's guide, which may write it again."
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Surroundings:
    """The state before the guide does anything."""

    site: Site | None
    """The chosen site."""
    profile: Path
    """The path of the user's own profile of the site, which may not exist yet."""
    foreign: bool
    """Whether that profile exists and the guide did not write it, so that the guide keeps it."""
    keys: Sequence[Key]
    script: str = ""
    """The user's training script in the current folder."""


@dataclass(frozen=True)
class GuideStep:
    """One step: whether it is done, and its description."""

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
    job = f"job.yaml for {around.script}" if around.script else f"{FIRST_FOLDER}/job.yaml"
    rows.append(("job", False, f"Writes {job} here and opens it. Sends nothing."))
    first = next((i for i, (_, done, _) in enumerate(rows) if not done), len(rows))
    marks: list[Mark] = [
        "done" if done else "next" if i == first else "later" for i, (_, done, _) in enumerate(rows)
    ]
    return tuple(
        GuideStep(name, mark, words) for (name, _, words), mark in zip(rows, marks, strict=True)
    )


def missing(steps: Sequence[GuideStep], name: str) -> str:
    """Return the first unfinished step that the step `name` requires, or ""."""
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
            "There is no key in ~/.ssh. Create one with `ssh-keygen -t ed25519`, then register "
            "its .pub file at the site."
        )
    for key in around.keys:
        if str(key.path) == progress.key:
            return f"{key.kind} {key.comment}. The site must know {key.path.name}.pub."
    count = f"{len(around.keys)} keys" if len(around.keys) > 1 else "one key"
    return (
        f"Choose yours: ~/.ssh has {count}. The guide does not create keys, and does not read "
        "them yet."
    )


def _account_words(progress: GuideAnswers, site: Site | None) -> str:
    if site is None:
        return "The project to bill."
    if not site.account.required:
        return f"{site.title} needs none."
    example = site.account.example
    if progress.account and not has_account(progress, site):
        return "This is not a project of the site." + (example and f" One looks like {example}.")
    return f"The project to bill, like {example}." if example else "The project to bill."


def _short(path: Path) -> str:
    home = str(Path.home())
    return str(path).replace(home, "~", 1) if str(path).startswith(f"{home}/") else str(path)


def _check_words(around: Surroundings) -> str:
    begin = "Logs" if around.foreign else f"Writes {_short(around.profile)}, then logs"
    host = around.site.hosts.login if around.site else "the site"
    return f"{begin} in to {host} and compares it with its profile. Changes nothing on the cluster."
