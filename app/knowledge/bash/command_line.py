"""The layers of a command line, outermost first: srun, container, launcher, program."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lumitui.app.knowledge.bash import option_tables
from lumitui.app.knowledge.bash.expand import ExpandedWord
from lumitui.app.knowledge.bash.getopt import parse
from lumitui.app.knowledge.bash.option_tables import SRUN
from lumitui.app.knowledge.bash.origins import Pieces
from lumitui.app.knowledge.script_job import (
    CommandOptions,
    CommandWord,
    ContainerCall,
    JobStep,
    Launcher,
    Shell,
    Trouble,
)
from lumitui.remote.site.source_position import Position

PYTHON = re.compile(r"(?:[a-z]+-)?python(\d(\.\d+)?)?t?(?:-[a-z]+)?$")
"""Name of a Python interpreter, or of a container's script that starts one, like
`conda-python-distributed`."""
CONTAINERS = {"singularity", "apptainer", "podman-hpc", "podman", "shifter", "enroot", "docker"}
"""Programs that enter a container."""
WRAPPER = re.compile(r"\w*(singularity|apptainer)\w*$")
"""A site's wrapper of such a program, like `singularity_wrapper`."""
_IMAGE = re.compile(r"\.(sif|simg|img|sqsh|squashfs)$|^[a-z]+://")


def name_of(argument: ExpandedWord) -> str:
    """Return a program's name without its folder."""
    return argument.text.rstrip("/").rsplit("/", 1)[-1]


def of_srun(options: CommandOptions) -> ContainerCall | None:
    """Return the container that srun itself enters through a plugin, or None."""
    option = options.get("container-image", "environment", "uenv", "container")
    if option is None or option.value is None:
        return None
    binds = binds_of(options, "container-mounts")
    program = "pyxis" if option.name == "container-image" else option.name
    return ContainerCall(program, "", word_of(option.value, option.at), options, binds, option.at)


def is_image(words: Sequence[ExpandedWord], *, own: bool) -> bool:
    """Return whether the first word is an image; with `own`, a wrapper may have its own image."""
    first = words[0].text
    if not own or _IMAGE.search(first):
        return not is_program(name_of(words[0]))
    following = len(words) > 1 and is_program(name_of(words[1]))
    return following and not is_program(name_of(words[0]))


def is_program(name: str) -> bool:
    """Return whether `name` is a shell, a Python interpreter or a launcher."""
    starters = (*option_tables.SHELLS, "torchrun", "deepspeed", "accelerate")
    return bool(PYTHON.match(name)) or name in starters


def binds_of(options: CommandOptions, *names: str) -> tuple[CommandWord, ...]:
    """Return the bind mounts that these options request."""
    return tuple(
        word_of(part, option.at)
        for option in options.all
        if option.name in names and option.value
        for part in option.value.split(",")
        if part
    )


def word_of(text: str, at: Position) -> CommandWord:
    """Return `text` as a word whose value is known if it contains no expansion."""
    return CommandWord(text, at, value=None if "$" in text or "`" in text else text)


_MODULES: dict[str, Launcher] = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "torch.distributed.elastic.run": "torchrun",
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed.launcher.launch": "deepspeed",
    "deepspeed": "deepspeed",
    "accelerate.commands.launch": "accelerate",
}
_TABLES = {
    "torchrun": option_tables.TORCHRUN,
    "deepspeed": option_tables.DEEPSPEED,
    "accelerate": option_tables.ACCELERATE,
}
_ENTERING = {"exec", "run", "shell", "start"}
_MPI = re.compile(r"(mpirun|mpiexec|orterun|prun)(\.|$)")  # mpiexec.hydra, mpirun.openmpi
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass
class CommandLine:
    """A command line, read as far as a single shell parses it."""

    step: JobStep
    rest: list[ExpandedWord]
    """The innermost program that this shell names, and its arguments."""
    shell: Shell
    """The place where a shell started by this line would run."""
    program: list[ExpandedWord] = field(default_factory=list)
    """The same program including `python` or `torchrun`, as a user would call it."""
    text: ExpandedWord | None = None
    """The text that `bash -c` runs."""
    stdin: bool = False
    """Whether a shell reads its standard input."""
    sets: list[tuple[str, Pieces, Position]] = field(default_factory=list)
    """Variables that `env A=1` or a container's `--env` sets."""
    troubles: list[Trouble] = field(default_factory=list)
    launches: bool = False
    """Whether the line starts ranks, enters a container or runs Python."""
    clean: bool = False
    """Whether the program starts without the shell's variables."""


def read_line(
    arguments: Sequence[ExpandedWord], step: JobStep, shell: Shell, is_script: Callable[[str], bool]
) -> CommandLine:
    """Return the layers of a command line; `step` describes the layers around it.

    `is_script` returns whether a word names a file of the job whose text is known.
    """
    line = CommandLine(step, list(arguments), shell)
    for _ in range(40):
        if not line.rest:
            break
        line.program = line.rest
        if not _one_layer(line, is_script):
            break
    return line


def starts_others(name: str) -> bool:
    """Return whether `name` is known to start another program, or is Python."""
    known = name in CONTAINERS or name in option_tables.WRAPPERS or name == "srun"
    return known or is_program(name) or bool(WRAPPER.match(name) or _MPI.match(name))


def _one_layer(line: CommandLine, is_script: Callable[[str], bool]) -> bool:
    """Remove the outermost program that starts another one; return False if there is none."""
    first = line.rest[0]
    name = name_of(first)
    if _ASSIGNMENT.match(first.text) and len(line.rest) > 1 and line.launches:
        return False
    if name == "srun":
        return _srun(line)
    if name in CONTAINERS or WRAPPER.match(name):
        return _container(line, name)
    if _MPI.match(name):
        return _mpirun(line)
    if name in option_tables.WRAPPERS:
        return _wrapper(line, option_tables.WRAPPERS[name])
    if name in option_tables.SHELLS:
        return _shell(line, is_script)
    if name == "torchrun" or name == "deepspeed":
        return _launcher(line, "torchrun" if name == "torchrun" else "deepspeed", 1)
    if name == "accelerate":
        return _accelerate(line)
    if PYTHON.match(name):
        return _python(line)
    return False if is_script(first.text) else _other(line)


def _srun(line: CommandLine) -> bool:
    parsed = parse(line.rest, SRUN, 1)
    line.launches = True
    line.shell = "task" if line.shell == "batch" else line.shell
    container = of_srun(parsed.options)
    line.step = replace(line.step, srun=parsed.options, container=container or line.step.container)
    for strange in parsed.strange:
        words = "has no value" if strange.missing_value else "is not an option of srun"
        fact = "cut" if strange.missing_value else ""
        message = f"`{strange.text}` {words}."
        line.troubles.append(Trouble("unknown-srun-option", message, strange.at, fact))
    line.rest = line.rest[parsed.rest :]
    group = parsed.options.value("het-group", "pack-group")
    if group is not None and group != "0":  # the request of this component is not read
        line.step = replace(line.step, trains=False)
    if parsed.options.has("multi-prog") or any(item.text == ":" for item in line.rest):
        what = "--multi-prog" if parsed.options.has("multi-prog") else "several components (`:`)"
        message = f"The step has {what}, which lumitui does not read."
        line.troubles.append(Trouble("not-understood", message, line.step.at))
        line.step = replace(line.step, trains=False)
        line.rest = []
    return True


def _container(line: CommandLine, name: str) -> bool:
    podman = name in ("podman-hpc", "podman", "shifter", "docker")
    table = option_tables.PODMAN if podman else option_tables.SINGULARITY
    outer = parse(line.rest, table, 1)
    at = outer.rest
    verb = ""
    if name != "shifter":
        verb = line.rest[at].text if at < len(line.rest) else ""
        if verb not in _ENTERING:
            return False
        at += 1
    inner = parse(line.rest, table, at)
    options = CommandOptions(outer.options.all + inner.options.all)
    image = None
    given = options.get("image")
    if given is not None and given.value:
        image = word_of(given.value, given.at)
    rest = line.rest[inner.rest :]
    if rest and given is None and is_image(rest, own=name not in CONTAINERS):
        image, rest = rest[0].word, rest[1:]
    if rest and rest[0].text == "--":
        rest = rest[1:]
    line.launches = True
    line.shell = "container"
    line.step = replace(
        line.step,
        container=ContainerCall(
            name, verb, image, options, binds_of(options, "bind", "volume"), line.rest[0].at
        ),
    )
    line.clean = line.clean or options.has("cleanenv", "containall")
    for option in options.all:
        if option.name == "env" and option.value:
            for part in option.value.split(","):
                key, _, value = part.partition("=")
                line.sets.append((key, _pieces_of(value, line.rest[0]), option.at))
    line.rest = rest
    return bool(rest)


def _pieces_of(text: str, near: ExpandedWord) -> Pieces:
    if not near.pieces:
        return ()
    kind = "unknown" if "$" in text else "literal"
    return (replace(near.pieces[0], text=text, kind=kind, inert=False),)  # type: ignore[arg-type]


def _mpirun(line: CommandLine) -> bool:
    parsed = parse(line.rest, option_tables.MPIRUN, 1)
    options = CommandOptions(tuple(
        replace(item, name={"c": "np", "n": "np", "H": "host", "N": "npernode", "ppn": "npernode"}
                .get(item.name, item.name)) for item in parsed.options.all
    ))  # fmt: skip
    line.launches = True
    line.shell = "task" if line.shell == "batch" else line.shell
    line.step = replace(
        line.step, launcher="mpirun", launcher_options=options, mpirun=name_of(line.rest[0])
    )
    line.rest = line.rest[parsed.rest :]
    return bool(line.rest)


def _wrapper(line: CommandLine, wrapper: option_tables.Wrapper) -> bool:
    start = 1
    if wrapper.verbs:
        if len(line.rest) < 2 or line.rest[1].text not in wrapper.verbs:
            return False
        start = 2
    parsed = parse(line.rest, wrapper.table, start)
    rest = line.rest[parsed.rest + wrapper.operands :]
    if wrapper.assignments:
        while rest and _ASSIGNMENT.match(rest[0].text):
            key, _, _value = rest[0].text.partition("=")
            line.sets.append((key, _after(rest[0].pieces, len(key) + 1), rest[0].at))
            rest = rest[1:]
        line.clean = line.clean or parsed.options.has("ignore-environment")
    if not rest:
        return False
    if wrapper.adds and rest[-1].pieces:
        last = rest[-1]
        more = replace(last.pieces[-1], text="$1", kind="unknown", inert=False)
        rest = [*rest, ExpandedWord(CommandWord("$1", last.at, value=None), (more,))]
        line.step = replace(line.step, repeated=True)
    line.rest = rest
    return True


def _after(pieces: Pieces, count: int) -> Pieces:
    """Return pieces without their first `count` characters."""
    rest = []
    for piece in pieces:
        if count >= len(piece.text):
            count -= len(piece.text)
        else:
            text = piece.text[count:]
            rest.append(replace(piece, text=text, start=piece.start + count))
            count = 0
    return tuple(rest)


def _shell(line: CommandLine, is_script: Callable[[str], bool]) -> bool:
    parsed = parse(line.rest, option_tables.SHELL, 1)
    rest = line.rest[parsed.rest :]
    if parsed.options.has("c"):
        if rest:
            line.text, line.rest = rest[0], rest
        return False
    if not rest or parsed.options.has("s"):
        line.stdin = True
        return False
    if is_script(rest[0].text):
        line.rest = rest
        return False
    line.rest = rest
    return _other(line)


def _launcher(line: CommandLine, launcher: Launcher, start: int) -> bool:
    parsed = parse(line.rest, _TABLES[launcher], start)
    line.launches = True
    line.step = replace(line.step, launcher=launcher, launcher_options=parsed.options)
    line.rest = line.rest[parsed.rest :]
    if parsed.options.has("no-python"):
        return bool(line.rest)
    if line.rest:
        _set_program(line, python=True)
    return False


def _accelerate(line: CommandLine) -> bool:
    parsed = parse(line.rest, option_tables.ACCELERATE, 1)
    if parsed.rest >= len(line.rest) or line.rest[parsed.rest].text != "launch":
        line.step = replace(line.step, trains=False)
        return False
    return _launcher(line, "accelerate", parsed.rest + 1)


def _python(line: CommandLine) -> bool:
    words = line.rest
    line.launches = True
    index = 1
    while index < len(words) and words[index].text.startswith("-"):
        text = words[index].text
        letter = next((each for each in text[1:] if each in "cmWX"), "") if text[:2] != "--" else ""
        if letter == "m":
            glued = text.partition("m")[2]
            return _module(line, index if glued else index + 1, glued)
        if letter == "c":
            line.step = replace(line.step, python=True, trains=False)
            line.rest = words[index + 1 :]
            return False
        index += 2 if letter in ("W", "X") and text.endswith(letter) and letter else 1
    line.rest = words[index:]
    if line.rest:
        _set_program(line, python=True)
    else:
        line.step = replace(line.step, python=True, trains=False, program=words[0].word)
    return False


def _module(line: CommandLine, index: int, glued: str) -> bool:
    if index >= len(line.rest):
        line.step = replace(line.step, python=True, trains=False)
        return False
    name = glued or line.rest[index].text
    if name in _MODULES:
        return _launcher(line, _MODULES[name], index + 1)
    line.rest = line.rest[index:]
    _set_program(line, python=True)
    if name.split(".")[0] in {"pip", "venv", "ensurepip", "json", "site", "zipfile", "http"}:
        line.step = replace(line.step, trains=False)
    return False


def _set_program(line: CommandLine, *, python: bool) -> None:
    line.step = replace(
        line.step,
        program=line.rest[0].word,
        python=python,
        arguments=tuple(each.word for each in line.rest[1:]),
    )


def _other(line: CommandLine) -> bool:
    """Read a program that starts no known one, or a script that starts the words after it."""
    first, name = line.rest[0], name_of(line.rest[0])
    scriptlike = "/" in first.text or name.endswith(".sh") or first.text.startswith("$")
    if scriptlike:
        for number, each in enumerate(line.rest[1:6], 1):
            following = name_of(each)
            if is_program(following) or following in CONTAINERS or following == "accelerate":
                line.rest = line.rest[number:]
                return True
    _set_program(line, python=name.endswith(".py"))
    unknown = name.startswith("$") and line.step.container is None
    if name in option_tables.IDLE or unknown or name in ("", ":", "[", "[["):
        line.step = replace(line.step, trains=False)
    return False
