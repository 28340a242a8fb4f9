"""Notes on the shell code around a script's program, for which a job file has no keys."""

import re
from collections.abc import Iterator, Sequence, Set
from itertools import dropwhile, takewhile

from lumitui.app.job.fields.text_fields import MODULE
from lumitui.app.knowledge.bash.interpreter import LOADS, SWAPS, module_call
from lumitui.app.knowledge.bash.other_statements import OtherStatement, other_statements
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.app.launch.from_script.notes import Notes
from lumitui.app.launch.from_script.own_environment import activated
from lumitui.app.launch.from_script.plain_values import within, written_at
from lumitui.app.launch.from_script.wrapper_script import program_in, wrappers, writes_wrapper
from lumitui.app.launch.placement import Placement
from lumitui.remote.site.source_position import NOWHERE, Position

_LOST = {
    "function": ("{}", "a job file has no functions"),
    "condition": ("{}", "a job file has no conditions; check what this one decides"),
    "loop": ("{}", "a job file has no loops; `grid:` starts a run for each value"),
    "piped in": ("{} |", "a job cannot pipe data into the program"),
    "piped out": ("| {}", "the run's log has the program's output"),
    "redirection": ("{}", "a job file has no redirections; the run's log has the output"),
    "negation": ("{}", "a run keeps its program's exit code, so `!` is dropped"),
    "background": ("{}", "the program runs in the foreground"),
}
_SHOWS = {
    "echo", "printf", "date", "hostname", "nvidia-smi", "rocm-smi", "pwd", "env", "printenv",
    "which", "whoami", "uname", "lscpu", "free", "squeue", "sacct", "uptime", "df", "du", "ls",
    "head", "tail", "cat", "nproc", "id", "type", "rocminfo", "scontrol",
}  # fmt: skip
"""Programs that only print, unless they write a file."""
_WORDS = {
    "alias": "a job file has no aliases; write the full command",
    "coproc": "a job runs only the program",
    "xargs": "a job file starts one program; `grid:` starts a run for each value",
    "exec": "the job runs only the program, and the run's log has the output",
}
_OURS = {"wait", "exit", "true", ":", "set", "shopt", "return"}
_PYTHON = {"conda", "mamba", "micromamba", "pip", "pip3", "uv", "activate"}
_MODULE = {"module", "ml"}
_PREPARED = "the job runs only the program"


def shell_of(
    job: ScriptJob, step: JobStep, parts: Sequence[OtherStatement], profile: Set[str], notes: Notes
) -> None:
    """Note the statements that the job file lacks.

    `parts` are those around `step`, `profile` the variables whose values are the profile's.
    """
    set_before = {item.name for item in job.variables if not item.local}
    inside = any(part.kind == "function" and not part.whole for part in parts)
    around = wrappers(job, step)
    for part in parts:
        if part.kind == "setting":
            _declared(part, notes)
            if not set_before.issuperset(part.names) or not part.names:
                notes.lose(part.text, "it sets no value that a job file could contain")
        elif part.kind == "unsetting":
            _unset(part, set_before, notes)
        elif part.text == "}":
            continue  # the end of a `coproc`, which the grammar lacks
        elif part.kind == "command" and writes_wrapper(part, around):
            notes.derive(part.text, "each of its lines is listed separately")
        elif part.kind == "command" and _makes(part.text, profile):
            notes.derive(part.text, "the job or the program creates the profile's folders")
        elif part.kind == "command":
            early = part.at < step.at and not inside
            _command(job, part, notes, early=early)
        else:
            form, words = _LOST[part.kind]
            notes.lose(form.format(part.text), words)
    inner = [(shell.text, _program_in(shell.text, step)) for shell in step.shells]
    inner += [(text, next(program_in(text), NOWHERE)) for text in around.values()]
    for text, place in inner:
        for part in other_statements(text, place):
            if part.kind == "unsetting":
                _unset(part, set_before, notes)
            elif part.kind in _LOST:
                form, words = _LOST[part.kind]
                notes.lose(form.format(part.text), words)


def _makes(text: str, names: Set[str]) -> bool:
    """Return whether a command only creates the folders of some of the variables `names`."""
    made = re.fullmatch(r"mkdir(?: -\w+)*((?: \"?\$\{?\w+\}?\"?)+)", text)
    return made is not None and set(re.findall(r"\w+", made[1])) <= names


def _declared(part: OtherStatement, notes: Notes) -> None:
    """Note the effects of a declaration other than setting variables."""
    if re.match(r"(?:declare|typeset|local)\s+(?:-\w+\s+)*-\w*[ilnu]", part.text):
        notes.lose(part.text, "bash converts such variables; `env:` and `args:` are plain text")
    elif re.match(r"readonly|(?:declare|typeset|local)\s+(?:-\w+\s+)*-\w*r", part.text):
        notes.derive(part.text, "a job file sets each variable once")


def _program_in(text: str, step: JobStep) -> Position:
    """Return the program's position in the text of `bash -c`, or NOWHERE."""
    name = step.program.text if step.program else ""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        column = line.find(name)
        if name and column >= 0:
            return Position(number, column + 1)
    return NOWHERE


def _unset(part: OtherStatement, set_before: set[str], notes: Notes) -> None:
    if set_before.issuperset(part.names):
        notes.derive(part.text, "the job file does not set it")
    else:
        notes.lose(part.text, "a job file cannot unset variables")


def _command(job: ScriptJob, part: OtherStatement, notes: Notes, *, early: bool) -> None:
    """Note the fate of a command; `early` if it runs before the program starts."""
    name = part.names[0] if part.names else ""
    if len(part.names) == 1 and name in _MODULE:
        _module(job, part, notes)
        return
    if len(part.names) == 1 and name in ("cd", "unset"):
        return  # see `workdir:` and `_unset`
    here = (command for command in job.commands if within(command.at, part.at))
    if len(part.names) == 1 and any(map(activated, here)):
        return  # see `activate:` and `venv:`
    if early and {"exit", "return"} & set(part.names):
        notes.lose(part.text, "the script may end here, before its program starts")
        return
    if set(part.names) <= _OURS and part.names and not part.text.startswith("("):
        notes.derive(part.text, "lumitui's script has its own")
        return
    notes.lose(part.text, _words(job, part, name))


def _words(job: ScriptJob, part: OtherStatement, name: str) -> str:
    if part.names and set(part.names) <= _SHOWS | _OURS and not re.search(r">(?!&2)", part.text):
        return "it only prints"
    if name in _WORDS:
        return _WORDS[name]
    if name == "trap":
        return "lumitui's script has its own traps; see `signal:`"
    if any(other.trains and within(other.at, part.at) for other in job.steps):
        return "a job file starts one program; write a second job file for it"
    if "<<" in part.text and name in ("cat", "tee"):
        return "put the file it writes into the project"
    if name == "mkdir":
        return "the program must create the folder"
    if name in ("source", ".") or name in _PYTHON:
        return "the job uses the profile's Python and variables; `venv:` adds packages"
    return _PREPARED


def _module(job: ScriptJob, part: OtherStatement, notes: Notes) -> None:
    """Note the fate of a `module` command; `modules_of` notes those that stay loaded."""
    verb, names = module_call(part.names[0], part.text.split()[1:])
    if verb in ("list", "avail", "spider", "show", "whatis", "is-loaded"):
        notes.lose(part.text, "it only prints")
    elif verb in ("purge", "reset"):
        notes.derive(part.text, "a job begins with its profile's modules")
    elif verb in _FOLDERS or part.text in {one.what for one in notes.lost}:
        pass  # `modules_of` knows whether a module of the job needs it, and why a swap is lost
    elif verb not in LOADS - SWAPS or not {*names} <= {*job.modules}:
        notes.lose(part.text, "`modules:` can only load modules")


_Call = tuple[str, list[str], str]
_FOLDERS = ("use", "unuse")


def _calls(job: ScriptJob) -> Iterator[_Call]:
    """Yield each `module` command: its action, the names, and its text."""
    for command in job.commands:
        if command.program in _MODULE:
            words = [word.known for word in command.words]
            written = written_at(job.text, command.at) or " ".join([command.program, *words])
            yield *module_call(command.program, words), written


def modules_of(job: ScriptJob, place: Placement, notes: Notes) -> list[str]:
    """Return `modules:`, and note the fate of the script's modules.

    A container has its own libraries, which the host's modules would only disturb.
    """
    lines, kept = " ".join(place.runtime.modules), list[str]()
    profile = {name.partition("/")[0]: name for name in lines.split()}
    swaps = {words[-1]: written for verb, words, written in _calls(job) if verb in SWAPS and words}
    for name in job.modules:
        what = swaps.get(name, f"module load {name}")
        ours = profile.get(name.partition("/")[0])
        if ours is None and place.container:
            notes.lose(what, "the job runs in a container with its own libraries")
        elif ours is None and re.fullmatch(MODULE, name):
            kept.append(name)
            notes.keep(what, "modules")
        elif ours is None:
            notes.lose(what, "only the site knows its name")
        elif name == ours:
            notes.derive(what, "the profile loads it")
        elif name == ours.partition("/")[0]:
            notes.derive(what, f"the profile loads {ours}")
        else:
            version = "" if "/" in ours else ", in its default version"
            notes.lose(what, f"the profile loads {ours}{version}")
    _folders(job, place, kept, notes)
    return kept


def _folders(job: ScriptJob, place: Placement, kept: Sequence[str], notes: Notes) -> None:
    """Note the fate of `module use`, given the modules that the job file keeps."""
    calls = list(_calls(job))
    for at, (verb, words, written) in enumerate(calls):
        if verb not in _FOLDERS:
            continue
        later = [name for each, names, _ in calls[at:] if each in LOADS for name in names]
        needs = next((name for name in kept if name in later), "")
        if f"use {' '.join(words[-1:])}" in " ".join(place.runtime.modules):
            notes.derive(written, "the profile has the same")
        elif needs:
            notes.lose(written, f"`modules:` can only load modules; check that it finds {needs}")
        elif replaced := _replacement(calls[at:], place):
            notes.derive(written, f"the profile replaces it with `{replaced}`")
        else:
            notes.derive(written, "the job loads no module from it")


def _replacement(calls: Sequence[_Call], place: Placement) -> str:
    """Return the profile's line with a module that is loaded before the next folder is used."""
    loads = takewhile(
        lambda call: call[0] not in _FOLDERS, dropwhile(lambda call: call[0] in _FOLDERS, calls)
    )
    names = {word.partition("/")[0] for verb, words, _ in loads if verb in LOADS for word in words}
    return next((line for line in place.runtime.modules if names & {*line.split()}), "")
