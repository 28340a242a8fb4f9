"""What a script sets and loads before its program, as keys of a job file."""

import re
from collections.abc import Mapping

from lumitui.app.adopt.notes import Notes
from lumitui.app.adopt.values import plain
from lumitui.app.job.keys.variables import check_environment_name, check_secret_name, is_taken
from lumitui.app.lint.model.job import Job
from lumitui.app.lint.model.words import Variable

_INTO = re.compile(r"^(?:SINGULARITY|APPTAINER)ENV_")
_BINDS = re.compile(r"^(?:SINGULARITY|APPTAINER)_BIND(?:PATH)?$")
_PREPARES = {
    "source", ".", "conda", "mamba", "pip", "pip3", "cp", "rsync", "tar", "unzip", "wget", "curl",
    "git", "mv", "ln", "rm", "mkdir", "ulimit", "unsquashfs", "spack", "eval",
}  # fmt: skip
"""Programs whose work before the launch a job file does not do."""
_MOST = 100


def environment_of(job: Job, profile: Mapping[str, str], notes: Notes) -> dict[str, object]:
    """Return `env:` and `secrets:`; `profile` has the variables that lumitui sets by itself."""
    values: dict[str, str] = {}
    secrets: list[str] = []
    for name in dict.fromkeys(item.name for item in job.variables):
        variable = job.variable(name)
        if variable is None or not variable.exported or name.startswith("SLURM_"):
            continue
        _one(variable, job, profile, notes, values, secrets)
    data: dict[str, object] = {}
    if values:
        data["env"] = values
    if secrets:
        data["secrets"] = secrets
    return data


def _one(
    variable: Variable,
    job: Job,
    profile: Mapping[str, str],
    notes: Notes,
    values: dict[str, str],
    secrets: list[str],
) -> None:
    name = _INTO.sub("", variable.name)
    if is_taken(name) or _BINDS.match(name):
        notes.derive(name, "the launch sets it")
        return
    if profile.get(name) == variable.value:
        notes.derive(name, "the profile sets it to the same")
        return
    try:
        check_environment_name(name)
    except ValueError as error:
        _refused(name, str(error), notes, secrets)
        return
    text = plain(variable.value, name, job, notes)
    if text is not None:
        values[name] = text
        notes.keep(f"{name}={text}"[:_MOST], f"env.{name}")
    elif name in profile:
        notes.derive(name, f"the profile sets it to {profile[name]}")
    else:
        notes.lose(f"{name}={variable.value}"[:_MOST], "its value is known there alone")


def _refused(name: str, words: str, notes: Notes, secrets: list[str]) -> None:
    try:
        check_secret_name(name)
    except ValueError:
        notes.lose(name, words)
        return
    secrets.append(name)
    notes.lose(name, "its value is not copied; export it on your machine: `secrets:` sends it")


def preparation_of(job: Job, modules: tuple[str, ...], notes: Notes) -> None:
    """Say what the script loads and does before its program; `modules`: the profile's lines."""
    known = {name.partition("/")[0]: name for name in re.split(r"\s+", " ".join(modules)) if name}
    for name in job.modules:
        what = f"module load {name}"
        ours = known.get(name.partition("/")[0])
        if ours is None:
            notes.lose(what, "the modules of a job are its profile's")
        elif name in (ours, ours.partition("/")[0]):
            notes.derive(
                what, "the profile loads it" if name == ours else f"the profile loads {ours}"
            )
        else:
            version = "" if "/" in ours else ", in its default version"
            notes.lose(what, f"the profile loads {ours}{version}")
    for command in job.commands:
        if command.program in _PREPARES and command.shell == "batch" and command.step is None:
            words = " ".join(word.text for word in command.words)
            notes.lose(f"{command.program} {words}"[:_MOST], "the job runs the program alone")
