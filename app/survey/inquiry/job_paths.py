"""The requirements of a job, and the paths it uses on the cluster. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.script_job import CommandWord, ScriptJob
from lumitui.app.launch.placement import placement_of
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE, Position

Role = Literal["image", "bind", "config", "input", "data", "wheels", "output", "work"]
"""The use of a path by a job: running, binding or reading it, or writing its log or results.

`data` may also be the job's own output, as an argument whose option does not name an input.
"""


@dataclass(frozen=True)
class JobPath:
    """A path in a job."""

    path: str
    role: Role
    at: Position = NOWHERE


@dataclass(frozen=True)
class InquiryNeeds:
    """The requirements of a job."""

    places: tuple[JobPath, ...] = ()
    account: str = ""
    partition: str = ""
    qos: str = ""
    seconds: int | None = None
    nodes: int | None = None
    price: float | None = None
    """The price of `jobs` at their time limits, in the site's unit."""
    unit: str = "hours"
    field_of: tuple[tuple[str, Position], ...] = ()
    """The positions of the job's `account`, `partition`, `time` and `nodes`."""
    modules: tuple[str, ...] = ()
    """The shell lines that load its modules and activate its environments."""
    functions: str = ""
    """The shell functions that these lines call."""
    python: str = ""
    """Its Python as a shell word, if not a container's; "" if it needs none."""
    python_version: str = ""
    """The version of its container's Python, as far as the profile tells."""
    torch: bool = False
    """Whether that Python needs torch."""
    jobs: int = 1
    """Number of its runs that use the account."""
    python_bound: str = ""
    """The versions that `venv:` is for, like `>=3.10,<3.13`."""

    def at(self, name: str) -> Position:
        """Return the position of `name` in the job."""
        return dict(self.field_of).get(name, NOWHERE)


def of_job(job: ScriptJob, site: Site) -> tuple[JobPath, ...]:
    """Return the known paths in a script."""
    paths: list[JobPath] = []
    for step in job.steps:
        call = step.container
        if call is not None:
            paths += _known(call.image, "image")
            for bind in call.binds:
                paths += _bind(bind.value or "", bind.at)
        for option in ("deepspeed_config", "deepspeed-config"):
            paths += _option(step.arguments, f"--{option}", "config")
        paths += _data([(word.known, word.at) for word in step.arguments])
    for name in ("output", "error"):
        log = job.options.get(name)
        if log is not None and "/" in (log.value or ""):
            paths += _whole((log.value or "").rpartition("/")[0], "output", log.at)
    return _kept(paths, site)


def of_spec(spec: JobSpec, site: Site, work_root: str) -> tuple[JobPath, ...]:
    """Return the job file's paths on the site, and the work root."""
    placed = placement_of(spec, site)
    paths = [*_whole(placed.image, "image", Position(field="container.image"))]
    if placed.container:
        for bind in spec.container.binds:
            paths += _bind(bind, Position(field="container.binds"))
        if spec.container.venv:
            paths += _whole(spec.container.venv, "bind", Position(field="container.venv"))
    if spec.venv and spec.venv.wheels:
        paths += _whole(spec.venv.wheels, "wheels", Position(field="venv"))
    for name, target in spec.links.items():
        paths += _whole(target, "data", Position(field=f"links.{name}"))
    paths += _data([(word, Position(field="args")) for word in spec.args])
    paths += _whole(work_root, "work", Position(field="account"))
    return _kept(paths, site)


def _known(word: CommandWord | None, role: Role) -> list[JobPath]:
    return _whole(word.value or "", role, word.at) if word else []


def _whole(path: str, role: Role, at: Position) -> list[JobPath]:
    """Return the path if it is known, and absolute or in the home."""
    plain = path.startswith(("/", "~/")) and not re.search(r"[$*?%{}`\n]", path)
    return [JobPath(path, role, at)] if plain and len(path) < 4096 else []


def _bind(text: str, at: Position) -> list[JobPath]:
    return [place for part in text.split(",") for place in _whole(part.split(":")[0], "bind", at)]


_INPUT = re.compile(
    r"--?(?:(?:train|val|valid|validation|test|eval)[-_]?)?(?:data|dataset|input|corpus|tokenizer|"
    r"vocab|pretrained|imagenet|images|videos|manifest)(?:[-_]?(?:dir|path|folder|file|root|set|"
    r"prefix))?|--(?:train|val|valid|validation|test|eval)[-_](?:dir|path|folder|file|root)"
)
"""Options whose values are inputs, like `--data` and `--train-file`."""


def _data(words: Sequence[tuple[str, Position]]) -> Iterator[JobPath]:
    """Yield the paths in arguments like `/data/x`, `--data /data/x` or `--data=/data/x`."""
    before = ""
    for word, at in words:
        name, equals, value = word.partition("=")
        named = bool(equals) and re.fullmatch(r"--?[\w-]+", name) is not None
        reads = _INPUT.fullmatch(name if named else before)
        yield from _whole(value if named else word, "input" if reads else "data", at)
        before = word


def _option(words: tuple[CommandWord, ...], name: str, role: Role) -> list[JobPath]:
    paths: list[JobPath] = []
    for word, following in pairwise(words):
        if word.known == name:
            paths += _known(following, role)
    return paths


_OF_NODES = ("/tmp", "/dev", "/proc", "/sys", "/run", "/var/tmp", "/usr", "/opt", "/etc", "/lib")
"""Folders that differ on each node or in an image, so the login node cannot check them."""


def _kept(paths: list[JobPath], site: Site) -> tuple[JobPath, ...]:
    """Return each path that all nodes share once, with its first role."""
    own = tuple(folder for folder in (*_OF_NODES, site.node_folder) if folder.startswith("/"))
    inside = {c.venv_mount for c in site.containers.values()}
    kept: dict[str, JobPath] = {}
    for place in paths:
        beneath = any(f"{place.path}/".startswith(f"{folder}/") for folder in (*own, *inside))
        if place.role == "image" or not beneath:
            kept.setdefault(place.path, place)
    return tuple(kept.values())
