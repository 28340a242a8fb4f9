"""The first steps: the demo on this machine, or a site, a key, a check, a measured node, a job."""

import importlib.util
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lumitui.app.explain.words import count
from lumitui.app.history.run import Run
from lumitui.app.job import examples
from lumitui.app.job.settings import Settings, install_hint, write_whole
from lumitui.app.launch.from_script.own_scripts import files_here, program_text
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.options.openssh import from_home, openssh_table

DEMO_FOLDER = Path("lumitui-demo")
"""The demo's folder, relative to the current one."""


def this_machine() -> Site:
    """Return the built-in site that runs jobs as plain processes."""
    sites = Sites([BUILT_IN])
    return next(site for site in map(sites.load, sites.names()) if site.scheduler == "process")


def has_torch() -> bool:
    """Return whether jobs on this machine find torch: LUMITUI_PYTHON or this Python runs them."""
    return bool(os.environ.get("LUMITUI_PYTHON")) or importlib.util.find_spec("torch") is not None


def prepare_demo(folder: Path) -> Path:
    """Return the demo's job file in `folder`; create it if it is missing.

    Raises:
        InputError: this Python lacks torch, and LUMITUI_PYTHON is not set.
        LumiError: the folder cannot be created.
    """
    if not has_torch():
        raise InputError(
            "The demo needs PyTorch, which this Python lacks.",
            f"{install_hint('torch')} Or set LUMITUI_PYTHON to a Python with torch.",
        )
    text = examples.text_for(this_machine(), examples.Beginning("demo"))
    return _job_in(folder, text, "Choose another with --to.")


def _job_in(folder: Path, text: str, do: str) -> Path:
    """Return the job file in `folder`; create it if it is missing."""
    job = folder / "job.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LumiError(f"Cannot create the folder {folder}: {error.strerror}.", do) from error
    if not job.exists():
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
    do = "Start lumitui in one of your own folders."
    if script:
        beginning = examples.Beginning(account=account or None, script=script)
        return _job_in(folder, new_job(site, beginning, folder), do)
    text = examples.text_for(site, examples.Beginning("first", account=account or None))
    return _job_in(folder / FIRST_FOLDER, text, do)


def new_job(site: Site, beginning: examples.Beginning, folder: Path) -> str:
    """Return a job file for `folder`; one for a Python program there fits what it reads and prints.

    Raises:
        InputError: as for `examples.text_for`.
        LumiError: the program cannot be read.
    """
    program = folder / (beginning.script or "")
    if program.suffix == ".py" and program.is_file():
        try:
            return program_text(program, site, beginning)
        except OSError as error:
            raise LumiError(
                f"Cannot read {program}: {error.strerror}.", "Check the file."
            ) from error
    name = beginning.name or Path(beginning.script or "").stem or None
    return examples.text_for(site, replace(beginning, name=name))


class GuideAnswers(BaseModel):
    """The user's answers in the guide; empty ones are missing."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    site: str = Field(default="", max_length=200)
    user: str = Field(default="", max_length=200)
    account: str = Field(default="", max_length=200)
    key: str = Field(default="", max_length=4000)
    """The private key; empty: ssh's own choice."""
    checked: bool = False
    """Whether lumitui reached the site with these answers and checked its profile."""
    space: str = Field(default="", max_length=1000)
    """What the check found about the work root, with its free space."""


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


def login_of(site: Site) -> tuple[str, str]:
    """Return the user name and the key for `site` as OpenSSH reads them, each with its source.

    Raises:
        LinkError: OpenSSH is not installed, or the configuration has an error.
    """
    hosts, config = site.hosts, Path(site.hosts.ssh_config or "~/.ssh/config").expanduser()
    own = config if hosts.ssh_config else None
    table = openssh_table(Login(hosts.login, user=hosts.user, config=own))
    keys = filter(os.path.isfile, map(from_home, table.values.get("identityfile", ())))
    source, key = f", from {_short(config)}", next(keys, "")
    key = hosts.identity or (_short(Path(key)) + source if key else "chosen by ssh")
    return table.one("user") + ("" if hosts.user else source), key


Mark = Literal["done", "next", "later"]
FIRST_LINE = "# Written by lumitui's guide, which may write it again."
_LOGIN = re.compile(r"\A#.*\nextends:.*\nhosts:\n(?:  (?:user|identity):.*\n)*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Surroundings:
    """The state before the guide does anything."""

    site: Site | None
    profile: Path
    """The path of the user's own profile of the site, which may not exist yet."""
    foreign: bool
    """Whether that profile exists and the guide did not write it, so that the guide keeps it."""
    keys: Sequence[Key]
    script: str = ""
    """The user's training script in the current folder."""
    measuring: Run | None = None
    """The unfinished job that measures a node of the site."""


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
    user = _USER.fullmatch(progress.user) is not None
    words = "Your user name on the login node."
    if not user and progress.user:
        words = "This is not a user name."
    rows.append(("user", user or around.foreign, words))
    key = around.foreign or progress.key in [str(one.path) for one in around.keys]
    rows.append(("key", key, _key_words(progress, around)))
    rows.append(("project", has_account(progress, site), _account_words(progress, site)))
    rows.append(("check", progress.checked, _check_words(progress, around)))
    rows.append(("measure", site is not None and is_measured(site), _measure_words(around)))
    job = f"job.yaml for {around.script}" if around.script else f"{FIRST_FOLDER}/job.yaml"
    rows.append(("job", False, f"Writes {job} and opens New (2). Sends nothing."))
    first = next((i for i, (_, done, _) in enumerate(rows) if not done), len(rows))
    return tuple(
        GuideStep(name, "done" if done else "next" if i == first else "later", words)
        for i, (name, done, words) in enumerate(rows)
    )


def missing(steps: Sequence[GuideStep], name: str) -> str:
    """Return the first unfinished step that the step `name` requires, or ""."""
    before = takewhile(lambda step: step.name != name, steps)
    needed = (step for step in before if step.name != "measure")  # a job runs unproved without it
    return next((step.name for step in needed if step.mark != "done"), "")


def profile_text(progress: GuideAnswers, path: Path) -> str:
    """Return the profile for `path` with the user's login; keep what follows it in that file."""
    lines = [FIRST_LINE, f"extends: {json.dumps(progress.site)}", "hosts:"]
    lines.append(f"  user: {json.dumps(progress.user)}")
    lines += [f"  identity: {json.dumps(progress.key)}"] if progress.key else []
    old = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    return "\n".join(lines) + "\n" + _LOGIN.sub("", old)


def has_account(progress: GuideAnswers, site: Site | None) -> bool:
    """Return whether the project has the site's form, or the site needs none."""
    return site is not None and not site.account.objection(progress.account)


def is_measured(site: Site) -> bool:
    """Return whether the profile has the cores near each GPU, so that a binding can be proved."""
    return bool(site.node.gpu_cores) or site.node.on_cpu


def _measure_words(around: Surroundings) -> str:
    if run := around.measuring:
        return f"{run.id} is {run.state}. When it has ended, its report opens here."
    if around.site and is_measured(around.site):
        return "The profile has the cores near each GPU: runs on whole nodes can be `proved`."
    return "Needed for `proved`: a job of at most five minutes. You see its price first."


def _about(site: Site | None) -> str:
    if site is None:
        return "Choose a cluster. For a new one, lumitui first surveys it and writes its profile."
    return f"{site.title}, at {site.hosts.login}."


def _key_words(progress: GuideAnswers, around: Surroundings) -> str:
    if not around.keys:
        return (
            "There is no key in ~/.ssh. Create one with `ssh-keygen -t ed25519`, then register "
            "its .pub file at the site."
        )
    for key in around.keys:
        if str(key.path) == progress.key:
            return f"{key.kind} {key.comment}. Register {key.path.name}.pub at the site."
    return f"Choose yours: ~/.ssh has {count(len(around.keys), 'key')}. The guide creates none."


def _account_words(progress: GuideAnswers, site: Site | None) -> str:
    example = site.account.example if site else ""
    if site and not site.account.required:
        return f"{site.title} needs none."
    if site and progress.account and not has_account(progress, site):
        return "This is not a valid project name." + (example and f" Example: {example}.")
    return f"The project to bill, like {example}." if example else "The project to bill."


def _short(path: Path) -> str:
    home = str(Path.home())
    return str(path).replace(home, "~", 1) if str(path).startswith(f"{home}/") else str(path)


def _check_words(progress: GuideAnswers, around: Surroundings) -> str:
    if progress.checked and progress.space:
        return f"Checked. The work root: {progress.space}."
    begin = "Logs" if around.foreign else f"Writes {_short(around.profile)}, then logs"
    host = around.site.hosts.login if around.site else "the site"
    return f"{begin} in to {host} and compares it with its profile. Changes nothing on the cluster."
