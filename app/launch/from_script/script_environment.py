"""The keys of a job file for the variables that a script sets."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lumitui.app.job.fields.text_fields import check_environment_name, check_secret_name, is_taken
from lumitui.app.knowledge.bash.other_statements import OtherStatement
from lumitui.app.knowledge.script_job import JobStep, ScriptJob, Variable
from lumitui.app.launch.from_script.notes import Notes
from lumitui.app.launch.from_script.plain_values import Values, is_literal, within, written_at
from lumitui.app.launch.from_script.wrapper_script import VISIBLE
from lumitui.remote.site.source_position import Position

_INTO = re.compile(r"^(?:SINGULARITY|APPTAINER)ENV_(?!(?:PREPEND|APPEND)_PATH$)")
"""Prefix of variables for the container; the two excluded forms change PATH in it instead."""
_BINDS = re.compile(r"^(?:SINGULARITY|APPTAINER)_BIND(?:PATH)?$")
_THERE = "only the site knows its value"
_MADE = "it differs in each job, because mktemp creates it; the program can create its own"
_OPEN = re.compile(r"`|\$\(|\$\{\w+\W(?!\$)")
_HOME = re.compile(r"^\w+\+?=~")
_LONGEST_WORD = 4_096
"""Maximum length of a value that replaces its variable, in characters: that of a path."""
_ON_NODE = re.compile(r"/(?:tmp|var/tmp|dev/shm)/|\$\{?TMPDIR\b")


@dataclass(frozen=True)
class ScriptVariable:
    """A variable of the script, as the program sees it."""

    last: Variable
    value: str | None
    """The value; None: the program does not see the variable."""
    doubt: str = ""
    """The reason if the value is uncertain or missing."""
    written: str = ""
    """Its last assignment, as written."""
    earlier: tuple[str, ...] = ()
    """Its earlier assignments, as written."""


def settings_of(
    job: ScriptJob, step: JobStep, parts: Sequence[OtherStatement]
) -> dict[str, ScriptVariable]:
    """Return the variables that a script sets, by name; `parts` are statements around `step`."""
    index = job.steps.index(step)
    mine = [item for item in job.variables if item.step in (None, index) and not item.local]
    by_name: dict[str, list[Variable]] = {}
    for item in mine:
        by_name.setdefault(item.name, []).append(item)
    variables: dict[str, ScriptVariable] = {}
    around = _Around.of(parts)
    for name, settings in by_name.items():
        setting = _setting(name, settings, job, step, around)
        if setting is not None:
            all_written = (written_at(job.text, item.at) for item in settings)
            earlier = tuple(text for text in all_written if text and text != setting.written)
            variables[name] = replace(setting, earlier=earlier)
    return variables


@dataclass(frozen=True)
class _Around:
    """The statements around a step, by their effect on variables."""

    called: bool
    """Whether the step is in a function."""
    blocks: list[OtherStatement]
    """Conditions and loops that do not contain the step."""
    shells: list[Position]
    unsettings: list[OtherStatement]

    @classmethod
    def of(cls, parts: Sequence[OtherStatement]) -> "_Around":
        blocks = [part for part in parts if part.whole and part.kind in ("condition", "loop")]
        blocks += [part for part in parts if part.text.startswith(("else", "elif"))]
        return cls(
            any(part.kind == "function" and not part.whole for part in parts),
            blocks,
            [part.at for part in parts if part.kind == "command"],
            [part for part in parts if part.kind == "unsetting"],
        )


def _setting(
    name: str, settings: Sequence[Variable], job: ScriptJob, step: JobStep, around: _Around
) -> ScriptVariable | None:
    last, called, blocks, shells = settings[-1], around.called, around.blocks, around.shells
    before = [v for v in settings if called or v.step is not None or v.at < step.at]
    # A wrapper's file is written by a command of the script, but its step reads it.
    here = [
        v
        for v in before
        if (v.step is not None and not v.conditional) or not any(within(v.at, at) for at in shells)
    ]
    sure = [v for v in here if not any(within(v.at, block.at) for block in blocks)]
    written = written_at(job.text, last.at)
    if not before:
        return ScriptVariable(last, None, "the script sets it after the program starts", written)
    if not here:
        return ScriptVariable(
            last, None, "the script sets it in a shell other than the program's", written
        )
    if len(sure) < len(here):
        words = "a condition or a loop sets it; write the intended value"
        return ScriptVariable(here[-1], sure[-1].value if sure else None, words, written)
    last = here[-1]
    written = written_at(job.text, last.at)
    for part in around.unsettings:
        if name in part.names and last.at < part.at and (called or part.at < step.at):
            return None
    if _HOME.match(written):
        words = "`~` is your home on the site; write the path"
        return ScriptVariable(last, last.value, words, written)
    return ScriptVariable(last, last.value, "", written)


def known_of(settings: Mapping[str, ScriptVariable]) -> dict[str, str]:
    """Return the values that can replace their variables: single words."""
    return {
        name: each.value
        for name, each in settings.items()
        if each.value is not None and not each.doubt and each.last.shell == "batch"
        and each.value.split() == [each.value] and not _OPEN.search(each.value)
        and f"${name}" not in each.value and len(each.value) <= _LONGEST_WORD
    }  # fmt: skip


def environment_of(
    settings: Mapping[str, ScriptVariable], values: Values, profile: Mapping[str, str], notes: Notes
) -> dict[str, object]:
    """Return `env:` and `secrets:`; `profile` has the variables that lumitui sets itself."""
    environment: dict[str, str] = {}
    secrets: list[str] = []
    settings = _temporary(settings)
    for name, setting in settings.items():
        extended = re.compile(rf"\$\{{?{name}\b")
        for text, later in pairwise((*setting.earlier, setting.written)):
            extends = extended.search(later) or later.startswith(f"{name}+=")
            verb = "extends" if extends else "overrides"
            notes.derive(text, f"a later assignment {verb} it")
        if not setting.last.exported:
            _inside(name, setting, values, notes)
        else:
            _one(name, setting, values, profile, notes, environment, secrets)
    data: dict[str, object] = {}
    if environment:
        data["env"] = environment
    if secrets:
        data["secrets"] = secrets
    return data


def _temporary(settings: Mapping[str, ScriptVariable]) -> dict[str, ScriptVariable]:
    """Return the variables, with the reason for those in a folder that `mktemp` makes."""
    made = {name for name, one in settings.items() if "mktemp" in one.last.value}
    uses = re.compile(rf"mktemp|\$\{{?(?:{'|'.join(map(re.escape, made))})\b") if made else None
    return {
        name: replace(one, doubt=_MADE)
        if uses and not one.doubt and uses.search(one.last.value) else one
        for name, one in settings.items()
    }  # fmt: skip


def _inside(name: str, setting: ScriptVariable, values: Values, notes: Notes) -> None:
    """Note the fate of a variable that the program does not get."""
    text = setting.written or f"{name}={setting.last.value}"
    if name == "IFS":
        notes.lose(text, "bash splits words at it; `args:` has one word per entry")
        return
    if re.match(r"(?:(?:declare|typeset|local)\b.*\s)?\w+=\(", text):
        notes.lose(
            text, "`args:` has no arrays; list the values under `grid:` to start a run for each"
        )
        return
    known = not setting.doubt and values.plain(setting.last.value) is not None
    if not known and not setting.doubt and is_taken(name) and not name.islower():
        notes.derive(text, "the launch sets it")
    elif not known:
        notes.lose(text, setting.doubt or f"a variable of the script; {_THERE}")
    else:
        notes.derive(text, "its value appears where the script uses it")


def _one(
    variable: str,
    setting: ScriptVariable,
    values: Values,
    profile: Mapping[str, str],
    notes: Notes,
    environment: dict[str, str],
    secrets: list[str],
) -> None:
    name = _INTO.sub("", variable)
    if name.startswith("SLURM_"):
        notes.lose(setting.written or name, "Slurm's own variable; the launch does not change it")
        return
    if _BINDS.match(name):
        notes.lose(setting.written, "write its paths as `container.binds:`")
        return
    if is_taken(name):
        if name.islower():
            notes.lose(setting.written, "the job script reserves names in lowercase")
        else:
            notes.derive(setting.written or name, "the launch sets it")
        return
    if VISIBLE.match(name) and "SLURM_LOCALID" in setting.last.value:
        notes.derive(setting.written or name, "each rank uses the GPU numbered LOCAL_RANK")
        return
    if setting.value is not None and profile.get(name) == setting.value and not setting.doubt:
        notes.derive(name, f"the profile also sets it to {setting.value}")
        return
    if profile.get(name, "").startswith("${NODE_TMP}/") and _ON_NODE.match(setting.value or ""):
        _elsewhere(name, setting.written, setting, profile, notes)
        return
    try:
        check_environment_name(name)
    except ValueError as error:
        _refused(name, str(error), notes, secrets)
        return
    bash_changes_it = setting.last.value.startswith("$(declare ")
    literal = is_literal(setting.written) and not bash_changes_it
    text = setting.value
    if text is not None:
        text = values.literal(text) if literal else values.plain(text)
    written = setting.written or f"{name}={setting.last.value}"
    if text is None or setting.doubt.startswith("`~`"):
        _elsewhere(name, written, setting, profile, notes)
        return
    environment[name] = text
    if re.search(r"\$\{\w+:?[-=]", written):
        notes.change(name, written.partition("=")[2], f"{text}, even if set outside")
    notes.keep(written if "$" in written else f"{variable}={text}", f"env.{name}")
    if setting.doubt:
        notes.lose(written, setting.doubt)


def _elsewhere(
    name: str, written: str, setting: ScriptVariable, profile: Mapping[str, str], notes: Notes
) -> None:
    """Note the fate of a variable whose value is not in the job file."""
    if name in profile:
        notes.change(
            name, written.partition("=")[2] or "not set", f"{profile[name]} (the profile's)"
        )
    else:
        notes.lose(written, setting.doubt or _THERE)


def _refused(name: str, words: str, notes: Notes, secrets: list[str]) -> None:
    try:
        check_secret_name(name)
    except ValueError:
        notes.lose(name, words)
        return
    secrets.append(name)
    notes.lose(
        name, "lumitui does not copy secrets; export it on your machine, and `secrets:` sends it"
    )
