"""Files that a program uses outside the project, like `../resources`; lumitui does not send them.

A path counts only if it exists on this machine: an unused default often points to nothing.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.failure.diagnosis import Diagnosis
from lumitui.app.knowledge.program.program_facts import PythonFile
from lumitui.app.knowledge.program.python_reader import read_python
from lumitui.app.launch.rules.job_file_catalogue import hit
from lumitui.remote.site.finding import Finding

_ABOVE = re.compile(r"[\"']\.\.[\"'/]")
_NO_MODULE = re.compile(r"No module named '?(\w+)")
_PATH = re.compile(r"[^\s'\"`:,;()]*[./][^\s'\"`:,;()]*")
_MOST = 3
"""Maximum number of paths listed by name."""


@dataclass(frozen=True)
class OutsidePaths:
    """What a program uses outside the project, and how to send it."""

    paths: tuple[str, ...]
    """The paths as the program writes them, relative to its working folder."""
    file: str
    """The program's first file that contains one of the paths."""
    keys: Mapping[str, str]
    """The job file's keys that also send the paths; empty if no folder has them all."""

    @property
    def advice(self) -> str:
        """How to send the paths, as a sentence."""
        if not self.keys:
            return "Copy it into the project, or upload it with `stage:`."
        *keys, last = (f"`{key}: {value}`" for key, value in self.keys.items())
        return (
            f"Set {', '.join(keys)} and {last}, so that lumitui sends that folder too; upload "
            "large data with `stage:`."
        )

    @property
    def listed(self) -> str:
        """The first of the paths."""
        more = f" and {len(self.paths) - _MOST} more" if len(self.paths) > _MOST else ""
        return f"{', '.join(self.paths[:_MOST])}{more}"


def outside_paths(spec: JobSpec, root: Path, texts: Mapping[str, str]) -> OutsidePaths | None:
    """Return the paths that the job's program uses outside the project at `root`; None if none.

    `texts` maps the project's paths to the program and the modules beside it.
    """
    script = posixpath.normpath(spec.script or "")
    used: dict[str, str] = {}
    for text in spec.args:
        used |= dict.fromkeys(_outside(spec, root, text.rpartition("=")[2]), "`args:`")
    for file in _program(script, texts):
        used |= dict.fromkeys(_named(spec, root, file), file.file)
    if not used:
        return None
    return OutsidePaths(tuple(used), next(iter(used.values())), _keys(spec, root, [*used]))


def outside_findings(spec: JobSpec, root: Path, texts: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding if the job's program uses files outside the project."""
    if found := outside_paths(spec, root, texts):
        yield hit(
            "outside-the-project",
            "project",
            f"{found.file} uses {found.listed}, which lumitui does not send, because it is outside "
            "the project.",
            found.advice,
            severity="warning",
            source="docs/scripts.md",
        )


def with_outside_advice(
    causes: list[Diagnosis], spec: JobSpec, root: Path, folder: str
) -> list[Diagnosis]:
    """Return `causes`; for a missing module or file beside the project, with how to send it.

    `root` is the project on this machine, and `folder` the run's on the site.
    """
    up = "../" * (len(Path(spec.workdir).parts) + 1)
    for at, cause in enumerate(causes if root.name else ()):
        if cause.id == "no-module" and (name := _NO_MODULE.search(cause.line)):
            paths, below = [f"{up}{name[1]}", f"{up}{name[1]}.py"], False
        elif cause.id == "no-file":
            paths = [*_missing(spec, root, cause.line, folder)]
            below = not any(path.startswith("../") for path in paths)
            paths = [f"{up}{path}" for path in paths] if below else paths
        else:
            continue
        if found := [each for path in paths for each in _outside(spec, root, path)][:1]:
            keys = _keys(spec, root, found)
            if keys and cause.id == "no-module" and not _adds_path(spec, root):
                keys["env"] = f"{{PYTHONPATH: {up.removesuffix('/')}}}"
            elif keys and below:
                keys["workdir"] = "."  # the program expects to run beside it
            words = f"{found[0]} is outside the project, so lumitui did not send it."
            causes[at] = replace(cause, do=f"{words} {OutsidePaths((), '', keys).advice}")
    return causes


def _missing(spec: JobSpec, root: Path, line: str, folder: str) -> Iterator[str]:
    """Yield the paths in a line of the log that the project lacks, from the working folder on."""
    for text in _PATH.findall(line):
        path = text
        if text.startswith(f"{folder}/"):
            path = posixpath.relpath(text, posixpath.join(folder, "code", spec.workdir))
        apart = path.startswith("../") or (path == text and not text.startswith("/"))
        with suppress(OSError, ValueError):  # a name that this machine cannot have
            inside = not path.startswith("../") and (root / spec.workdir / path).exists()
            if apart and path.isprintable() and not inside:
                yield path


def _adds_path(spec: JobSpec, root: Path) -> bool:
    """Return whether the job file or the program itself says where its modules are."""
    try:
        text = (root / (spec.script or "")).read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return "PYTHONPATH" in spec.env or "sys.path" in text


def _program(script: str, texts: Mapping[str, str]) -> Iterator[PythonFile]:
    """Yield the program's file, and those of the modules beside it that it imports."""
    if not script.endswith(".py") or script not in texts:
        return
    program = read_python(texts[script], script)
    yield program
    for name in sorted(program.imports):
        path = posixpath.join(posixpath.dirname(script), f"{name}.py")
        if path in texts:
            yield read_python(texts[path], path)


def _named(spec: JobSpec, root: Path, file: PythonFile) -> Iterator[str]:
    for text in file.texts:
        yield from _outside(spec, root, text.value)
    added = [call for call in file.calls if call.name in ("sys.path.append", "sys.path.insert")]
    if any(_ABOVE.search(word.text) for call in added for word in call.arguments):
        for name in sorted({name.partition(".")[0] for name in file.imports}):
            for path in (f"../{name}", f"../{name}.py"):
                yield from _outside(spec, root, path)


def _outside(spec: JobSpec, root: Path, text: str) -> Iterator[str]:
    """Yield the text if it is a path outside the project."""
    plain = text.startswith("../") and text.isprintable() and len(text) < 500
    if plain and _levels(spec, text):
        try:
            if (root / spec.workdir / text).exists():
                yield text
        except OSError:
            return  # a name that this machine cannot have


def _levels(spec: JobSpec, path: str) -> int:
    """Return how many folders above the project a path in the program points."""
    return posixpath.normpath(posixpath.join(spec.workdir, path)).split("/").count("..")


def _keys(spec: JobSpec, root: Path, paths: list[str]) -> dict[str, str]:
    levels = max(_levels(spec, path) for path in paths)
    above = root.resolve().parents[:levels]
    if len(above) < levels or above[-1] in (Path.home(), Path(above[-1].anchor)):
        return {}
    inside = root.resolve().relative_to(above[-1]).as_posix()
    project = posixpath.normpath(posixpath.join(spec.project, *[".."] * levels))
    workdir, script = (
        posixpath.normpath(posixpath.join(inside, path))
        for path in (spec.workdir, spec.script or "")
    )
    return {"project": project, "workdir": workdir, "script": script}
