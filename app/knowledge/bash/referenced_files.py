"""The files beside a script that it names: its program, its configurations, what it sources."""

import posixpath
import re
from collections.abc import Iterator

from lumitui.app.knowledge.script_job import ScriptJob

_FILE = re.compile(r"[\w./+-]+\.(?:py|sh|bash|json|hjson|ya?ml|toml|txt|conf|cfg|env)")
_HERE = re.compile(r"^(?:\$\{?(?:PWD|SLURM_SUBMIT_DIR)\}?|\$\(pwd\))/")
_IMPORT = re.compile(r"^\s*(?:from|import)\s+\.*([A-Za-z_][\w.]*)", re.MULTILINE)


def referenced_files(job: ScriptJob) -> Iterator[str]:
    """Yield the paths that a job's words and the files at hand may name, as they are written.

    Relative ones alone: others stand on the cluster.
    """
    seen: set[str] = set()
    for path in _all(job):
        plain = posixpath.normpath(path)
        inside = not plain.startswith(("/", "../", "~", "$")) and plain != ".."
        if inside and path not in seen:
            seen.add(path)
            yield path


def _all(job: ScriptJob) -> Iterator[str]:
    words = [word for command in job.commands for word in command.words]
    words += [step.program for step in job.steps if step.program]
    words += [word for step in job.steps for word in step.arguments]
    for word in words:
        text = _HERE.sub("", word.known.rpartition("=")[2])
        if _FILE.fullmatch(text) or re.fullmatch(r"\./[\w./+-]+", text):
            yield text
    for step in job.steps:
        if step.python and step.program and "." in step.program.known:
            module = step.program.known.replace(".", "/")
            yield from (f"{module}.py", f"{module}/__main__.py")
    for variable in job.variables:
        yield from _FILE.findall(variable.value)
    for path, text in job.files.items():
        if path.endswith(".py"):
            yield from _imported(path, text)


def _imported(path: str, text: str) -> Iterator[str]:
    """Yield the modules beside a program that it imports, and the configurations it names."""
    folder = posixpath.dirname(path)
    for name in _IMPORT.findall(text):
        module = posixpath.join(folder, name.replace(".", "/"))
        yield from (f"{module}.py", f"{module}/__init__.py")
    for quoted in re.findall(r"""["']([\w./-]+\.(?:json|ya?ml))["']""", text):
        yield posixpath.join(folder, quoted)
