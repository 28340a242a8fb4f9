"""The examples in `templates/examples`, adapted to a site, and the writing of new job files.

An example is one YAML file in the folder of its group, or a folder there with a `job.yaml` and the
files of its project. The first line of its comment is its summary.
"""

import errno
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import shorten

from lumitui.app.job.edit import UNSEEN, set_key
from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.remote.site import walltime
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.writer import marked

EXAMPLES = Path(__file__).resolve().parents[2] / "templates" / "examples"
GROUPS = {
    "mnist": "Digits (MNIST), in minutes",
    "models": "Larger models",
    "benchmarks": "Benchmarks",
    "scripts": "Scripts of your own",
}
"""The folders of the examples, and their titles."""
_COMMENTS = 29
"""The column of the comments."""
_RUN_FILE = EXAMPLES / "lumitui_run.py"
_JOB = "job.yaml"


@dataclass(frozen=True)
class JobExample:
    """One example."""

    name: str
    group: str
    """The group's title."""
    summary: str
    """Its description in one line."""
    text: str
    """Its job file."""
    files: tuple[tuple[str, str], ...] = ()
    """Name and text of the files that belong beside the job file."""

    @property
    def spec(self) -> JobSpec:
        """The parsed job file."""
        return parse_job(self.text, self.name)


@cache
def examples() -> dict[str, JobExample]:
    """Return the examples by name, group by group."""
    rows = (
        _example(path, title)
        for folder, title in GROUPS.items()
        for path in sorted((EXAMPLES / folder).iterdir())
    )
    return {example.name: example for example in rows}


def _example(path: Path, group: str) -> JobExample:
    # pip compiles what it installs, which adds the folder `__pycache__`.
    here = sorted(path.iterdir()) if path.is_dir() else []
    beside = [item for item in here if item.is_file() and item.name != _JOB]
    text = (path / _JOB if path.is_dir() else path).read_text(encoding="utf-8")
    summary = text.partition("\n")[0].removeprefix("# ")
    files = tuple((item.name, item.read_text(encoding="utf-8")) for item in beside)
    if any(f"import {_RUN_FILE.stem}" in program for _, program in files):
        files += (run_file(),)
    return JobExample(path.stem, group, summary, text, files)


@cache
def run_file() -> tuple[str, str]:
    """Return the name and text of the module with which a script stops, saves and reports."""
    return _RUN_FILE.name, _RUN_FILE.read_text(encoding="utf-8")


OWN_SCRIPT = "script"
"""The example for a user's own script."""
_FIRST = "ddp"


@dataclass(frozen=True)
class Beginning:
    """The user's choices for a new job."""

    name: str | None = None
    """The job's name; None: the example's."""
    account: str | None = None
    script: str | None = None
    """The user's own script, from the job file's folder."""
    trainer: str | None = None
    """A bundled trainer; `ddp` if neither trainer, script nor example is given."""
    launcher: str | None = None
    """The launcher; None: that of the example's script, if the site has it, else the site's
    first."""
    example: str | None = None
    """An example's name."""
    gpus: int | None = None
    """GPUs of the whole job; None: the example's."""
    image: str | None = None
    """The container image's path; None: the site's default."""


def chosen(beginning: Beginning) -> JobExample:
    """Return the example that a user chose; InputError if it is unknown, or several are."""
    choices = [item for item in (beginning.script, beginning.trainer, beginning.example) if item]
    if len(choices) > 1:
        raise InputError(
            "--script, --trainer and --example cannot be combined.",
            "Choose one of them.",
        )
    if beginning.script:
        return examples()[OWN_SCRIPT]
    if beginning.trainer:
        return examples()[_example_of_trainer(beginning.trainer)]
    name = beginning.example or _FIRST
    if name not in examples():
        raise InputError(f"{name!r} is not an example.", "`lumitui new --list` lists them.")
    return examples()[name]


def _example_of_trainer(trainer: str) -> str:
    bundled = {"lightning": "lightning", "lightning_trainer": "lightning"}
    bundled |= {name: name for name in TRAINERS if name in examples()}
    if trainer not in bundled:
        raise InputError(
            f"{trainer!r} is not a bundled trainer.", f"Use one of {', '.join(sorted(bundled))}."
        )
    return bundled[trainer]


def text_for(site: Site, beginning: Beginning) -> str:
    """Return a commented job file for `site`; InputError if the GPUs do not fit its nodes."""
    example = chosen(beginning)
    text, spec = example.text, example.spec
    if beginning.gpus is not None:
        _refuse_several(example, beginning.gpus, site)
        nodes, of_each = _split(beginning.gpus, site)
        text = set_key(text, ("nodes",), str(nodes))
        text = set_key(text, ("gpus_per_node",), None if of_each is None else str(of_each))
        spec = spec.model_copy(update={"nodes": nodes, "gpus_per_node": of_each})
    if beginning.name:
        text = set_key(text, ("name",), beginning.name)
    text = set_key(text, ("site",), site.name)
    text = set_key(text, ("partition",), fitting_partition(site, spec))
    text = set_key(text, ("launcher",), beginning.launcher or _launcher(site, example))
    if beginning.script:
        text = set_key(text, ("script",), beginning.script)
    if beginning.image:
        text = set_key(text, ("container", "image"), beginning.image)
    account = beginning.account or site.account.default or site.account.example
    text = set_key(text, ("account",), account if site.account.required else None)
    partition = re.compile(r"^partition: .*$", re.MULTILINE)
    return marked(partition.sub(lambda found: _others(found[0], site), text))


def _others(line: str, site: Site) -> str:
    """Return the line of the partition, with the site's other ones in a comment."""
    others = [_one_line(name) for name in site.partitions if not line.endswith(f" {name}")]
    comment = shorten(", ".join(others), 66 - _COMMENTS, placeholder=" …")
    return f"{line:<{_COMMENTS}}# or {comment}" if others else line


def _one_line(words: str) -> str:
    """Return a profile's text for a comment, without line breaks and invisible characters."""
    return UNSEEN.sub("?", " ".join(words.split()))


def _refuse_several(example: JobExample, gpus: int, site: Site) -> None:
    """Raise InputError if an example with a single rank is to use several GPUs."""
    single = STRATEGIES[example.spec.strategy].single_rank
    if single and gpus > 1:
        raise InputError(
            f"The example {example.name} has one rank, which uses one "
            f"{site.node.device.some(1).removeprefix('1 ')}, not {gpus}.",
            "Omit --gpus, or choose an example with several ranks: `lumitui new --list`.",
        )


def _split(gpus: int, site: Site) -> tuple[int, int | None]:
    """Return the nodes for `gpus` GPUs, and the GPUs per node (None: all); InputError if uneven."""
    each = site.node.gpus
    if gpus < each:
        return 1, gpus
    if gpus % each:
        raise InputError(
            f"{gpus} is not a multiple of the {site.node.device.some(each)} per node at "
            f"{site.name}.",
            f"Use fewer than {each}, or {gpus - gpus % each} or {gpus - gpus % each + each}.",
        )
    return gpus // each, None


def _launcher(site: Site, example: JobExample) -> str:
    """Return the launcher for which an example's script was written, else the site's first.

    If the site lacks that launcher, `srun` can start the ranks of any program.
    """
    names = (example.spec.launcher, "srun") if example.files and example.spec.script else ()
    return next((name for name in names if name in site.launchers), site.launchers[0])


def fitting_partition(site: Site, spec: JobSpec) -> str:
    """Return the first partition of `site` that accepts a job of this size, or its first.

    For a job that would leave GPUs of a node idle, partitions that bill whole nodes come last.
    """
    fitting = [name for name, item in site.partitions.items() if _takes(item, site, spec)]
    idle = _gpus_of_each(site, spec) < site.node.gpus
    fitting.sort(key=lambda name: idle and site.partitions[name].allocation == "node")
    return next(iter(fitting or site.partitions))


def _gpus_of_each(site: Site, spec: JobSpec) -> int:
    single = STRATEGIES[spec.strategy].single_rank
    return spec.gpus_per_node or (1 if single else site.node.gpus)


def _takes(partition: Partition, site: Site, spec: JobSpec) -> bool:
    of_each = _gpus_of_each(site, spec)
    limit = partition.max_time_for(spec.nodes)
    return (
        spec.nodes <= partition.max_nodes
        and of_each <= (partition.max_gpus_per_node or of_each)
        and (partition.min_gpus or 0) <= spec.nodes * of_each
        and spec.nodes * of_each <= (partition.max_gpus or spec.nodes * of_each)
        and walltime.seconds_of(spec.time) <= walltime.seconds_of(limit)
    )


_NO_PATH = (errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR)


def refuse_there(folder: Path, files: tuple[tuple[str, str], ...]) -> None:
    """Raise InputError if one of `files` exists in the folder."""
    existing = [name for name, _ in files if (folder / name).exists()]
    if existing:
        raise InputError(
            f"{folder / existing[0]} already exists.",
            "The example contains a file with the same name: write it to another folder.",
        )


def write_all(path: Path, text: str, files: tuple[tuple[str, str], ...]) -> None:
    """Write a job file and the files beside it, all or nothing; never overwrite a file.

    Raises:
        InputError: one of them exists, or the folder does not.
        LumiError: one cannot be written.
    """
    refuse_there(path.parent, files)
    written: list[Path] = []
    try:
        for name, content in ((path.name, text), *files):
            write_new(path.parent / name, content)
            written.append(path.parent / name)
    except LumiError:
        for one in written:
            with suppress(OSError):
                one.unlink()
        raise


def write_new(path: Path, text: str) -> None:
    """Write `text` to a new file with mode 0600, a program with 0700; never overwrite a file.

    Raises:
        InputError: the file exists, its folder does not, or the path is invalid.
        LumiError: it cannot be written.
    """
    mode = 0o700 if text.startswith("#!") else 0o600
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(f"{path} already exists.", "Choose another with --output.") from error
    except FileNotFoundError as error:
        raise InputError(f"There is no folder {path.parent}.", "Create it first.") from error
    except OSError as error:
        message = f"Cannot write {path}: {error.strerror}."
        if error.errno in _NO_PATH:
            raise InputError(message, "Choose another with --output.") from error
        raise LumiError(message, "Check the disk.") from error
