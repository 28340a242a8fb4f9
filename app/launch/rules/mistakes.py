"""The adviser's rules about mistakes in a job file: laptop paths, outputs of a grid, secrets."""

import re
from collections.abc import Iterator
from itertools import pairwise

from lumitui.app.job.grid import Cell
from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.job_file_catalogue import LaunchRule, hit
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key

_LAPTOP = re.compile(
    r"(?:^|[=:,])(?P<path>/Users/[^/\s,:]+/?[^\s,:]*|[A-Za-z]:[\\/][^\s,]+|"
    r"/mnt/[a-z]/Users/[^\s,:]+|/content/(?:drive|sample_data)[^\s,:]*|/kaggle/[^\s,:]+)"
)
"""Paths of macOS, Windows, WSL, Colab and Kaggle."""


def _laptop(launch: Launch, place: Placement) -> Iterator[Finding]:
    if place.site.scheduler != "slurm":
        return
    for key, text in _words(launch.spec):
        match = _LAPTOP.search(text)
        if match:
            yield hit(
                "laptop-path",
                key,
                f"`{key}:` contains {match['path']}, a laptop's path, which does not exist at "
                f"{place.site.name}.",
                f"Upload it with `stage: {{DATA: {match['path']}}}` and use $STAGE_DATA in "
                "`args:`, or write its path on the site.",
            )


def _words(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the texts of a job file that may contain paths on the site, with their keys."""
    yield from (("args", text) for text in spec.args)
    yield from (("resume", text) for text in spec.resume)
    yield from ((f"env.{name}", text) for name, text in spec.env.items())
    yield from ((f"links.{name}", text) for name, text in spec.links.items())
    yield from (("container.binds", bind.partition(":")[0]) for bind in spec.container.binds)
    for key, path in (("image", spec.container.image), ("venv", spec.container.venv)):
        if path:
            yield f"container.{key}", path


_IMAGE_FILE = re.compile(r"\.{1,2}/|[^/$][^:]*\.(?:sif|simg|sqsh|img)$")
"""A relative path of an image; other images are names, like a uenv's."""


def is_relative_image(image: str) -> bool:
    """Return whether a container's image is a file by its relative path."""
    return bool(_IMAGE_FILE.match(image)) and not image.startswith("~")


def is_relative(path: str) -> bool:
    """Return whether a path of a container begins neither at a root nor with a variable."""
    return bool(path) and not path.startswith(("/", "$", "~"))


def _relative(launch: Launch, place: Placement) -> Iterator[Finding]:
    choice = launch.spec.container
    paths = [("image", choice.image)] if is_relative_image(choice.image or "") else []
    paths += [("venv", choice.venv)] if is_relative(choice.venv or "") else []
    sources = (bind.partition(":")[0] for bind in choice.binds)
    paths += [("binds", source) for source in sources if is_relative(source)]
    for key, path in paths:
        yield hit(
            "relative-path",
            f"container.{key}",
            f"`container.{key}:` has the relative path {path}, but the job starts in the run's own "
            "copy of the project, not in your folder.",
            "Write its absolute path on the site, or upload it with `stage: {IMAGE: …}` and write "
            "$STAGE_IMAGE.",
        )


_SYSTEM = re.compile(r"(?:/usr/bin/)?python3?")
_OWN = ("PATH", "PYTHONPATH", "PYTHONHOME")
"""Variables that point a job to its own environment."""


def _bare(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec, site = launch.spec, place.site
    program = place.trainer is not None or (spec.script or "").endswith(".py")
    own = any(name in spec.env for name in _OWN) or bool(spec.python or spec.activate)
    own = own or not _SYSTEM.fullmatch(site.python)
    if place.container or place.modules or own or not program:
        return
    if site.python_on_compute_nodes is False:
        having = (f"{{generation: {name}}}" for name, one in site.containers.items() if one.image)
        named = next(having, "{image: /path.sif}")
        yield hit(
            "bare-python",
            "modules",
            f"The nodes of {site.name} have no {site.python}, so a job without a container or "
            "modules immediately exits with 127.",
            "Load a module that has Python (`modules: [NAME]`), run in an image (`container: "
            f"{named}`), or use your own environment (`activate: FOLDER`). To load a module in "
            "every job, add it to the profile: `modules: [module load NAME]`. If the nodes do have "
            "Python, write its path in the profile (`python:`).",
        )
    elif spec.container.none and not spec.venv:
        yield hit(
            "bare-python",
            "container",
            f"Without a container and modules, {place.runtime.python} at {site.name} is the "
            "system's own, which has no PyTorch.",
            "Omit `container: {none: true}`, install packages with `venv:`, or use your own "
            "environment (`activate: FOLDER`).",
            fix=Fix("use the site's container", at_key("container"), None),
        )


_ALL = re.compile(r"(?:\./)?(?:\*\*/)*(?:\*+|\.\*|\*\.\*|\.)?/?")


def _everything(launch: Launch, place: Placement) -> Iterator[Finding]:
    for pattern in launch.spec.ship_secrets:
        if _ALL.fullmatch(pattern):
            yield hit(
                "ship-all-secrets",
                "ship_secrets",
                f"`ship_secrets: [{pattern}]` sends every file that looks like a secret, even "
                "future ones.",
                "List only the files that the job needs, like `ship_secrets: [config/dev.env]`.",
            )


_OUTPUT = re.compile(
    r"(?:out|output|outdir|save|ckpts?|checkpoints?|results?|logs?|logdir|savedir|work|run|exp|"
    r"experiment|log|tensorboard)(?:-?(?:dir|path|folder|file|root|to|directory|prefix))?"
)
_OF_A_RUN = re.compile(r"\$\{?(?:RUN_DIR|SLURM_JOB_ID|SLURM_ARRAY|NODE_TMP)|^/tmp|^/dev/shm")


def shared_outputs(cells: tuple[Cell, ...]) -> tuple[Finding, ...]:
    """Return a finding for each argument with which all runs of a grid write to one place."""
    if len(cells) < 2 or cells[0].name:
        return ()
    own = {key for key, _value in cells[0].settings}
    return tuple(
        hit(
            "grid-output",
            "args",
            f"All {len(cells)} runs of the grid write to {name} {value}, and overwrite each "
            "other's files.",
            f"Omit {name}, and write to $RUN_DIR, which differs for each run.",
        )
        for name, value in _outputs(cells[0].spec)
        if name not in own
    )


def waiting_lanes(spec: JobSpec, runs: int) -> tuple[Finding, ...]:
    """Return how the runs of a grid with `at_once:` wait for each other."""
    lanes = spec.at_once
    if lanes is None or lanes >= runs:
        return ()
    starts = [f"run {lanes + one} once run {one} has ended" for one in range(1, runs - lanes + 1)]
    order = ", ".join(starts[:2]) + (", and so on" if len(starts) > 2 else "")
    return (
        hit(
            "at-once",
            "at_once",
            f"Only {lanes} of the {runs} runs can run at a time. The others wait: {order}, "
            "whatever its outcome.",
            "The script of a waiting run has one more line than the preview: "
            "`--dependency=afterany:` with those runs' jobs.",
        ),
    )


_ENDS = {"done": "is done", "failed": "has failed", "any": "has ended, whatever the outcome"}


def sequence(cells: tuple[Cell, ...]) -> tuple[Finding, ...]:
    """Return the order of the jobs of `then:`."""
    waits = [
        f"{later.name} starts once {one.name} {_ENDS[later.follows]}"
        for one, later in pairwise(cells)
        if later.follows
    ]
    if not waits:
        return ()
    return (
        hit(
            "then",
            "then",
            f"{'; '.join(waits)}.",
            "Each script then has one more line than the preview, `--dependency=` with that run's "
            "job, and that run's folder for $AFTER_DIR.",
        ),
    )


def _outputs(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the arguments that set an output folder outside the run's own."""
    for number, word in enumerate(spec.args):
        name, equals, value = word.partition("=")
        following = spec.args[number + 1] if number + 1 < len(spec.args) else ""
        value = value if equals else following
        plain = name.lstrip("-").replace("_", "-").lower()
        shared = value.startswith(("/", "$")) and not _OF_A_RUN.search(value)
        if name.startswith("-") and _OUTPUT.fullmatch(plain) and shared:
            yield name, value


RULES: tuple[LaunchRule, ...] = (_laptop, _relative, _bare, _everything)
