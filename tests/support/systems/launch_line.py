"""A launch line taken apart: by what the ranks are started, in which container, with which options.

A line is one that a person or a template wrote for bash: `srun … singularity exec … IMAGE bash -c
'…' torchrun …`, the program last. What it means is a dict: `launcher`, `by srun`, `container`, and
one entry for each option and for each variable that a task exports. Two lines that have the same
dict start the same ranks.
"""

import re
import shlex
from dataclasses import dataclass, field

_STARTERS = {
    "torch.distributed.run": "torchrun",
    "torchrun": "torchrun",
    "deepspeed": "deepspeed",
    "deepspeed.launcher.launch": "deepspeed",
    "accelerate": "accelerate",
    "accelerate.commands.launch": "accelerate",
    "mpirun": "mpirun",
    "mpirun.mpich": "mpirun",
}
"""Words that start ranks, with the launcher that they are."""

_TAKES_A_WORD = {
    *("--nnodes", "--nproc_per_node", "--node_rank", "--master_addr", "--master_port"),
    *("--num_processes", "--num_machines", "--mixed_precision"),
    *("-np", "-n", "-ppn", "-hosts", "--host", "--map-by", "-B", "--bind-to", "-x", "-genv"),
}
"""Options whose value is the next word, where the line has no `=`."""

_RUNTIMES = ("singularity", "apptainer", "singularity_wrapper", "apptainer_wrapper")
_SAME = {"--nproc-per-node": "--nproc_per_node", "-K1": "--kill-on-bad-exit=1"}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass
class _Found:
    """What is found while the words are read from left to right."""

    parts: dict[str, str] = field(default_factory=dict)
    launcher: str = ""


def parts_of(line: str) -> dict[str, str]:
    """Return what the launch line means, by part.

    Raises:
        ValueError: a quote is not closed.
    """
    found = _Found()
    _read(shlex.split(line.replace("\\\n", " "), posix=True), found)
    by_srun = "by srun" in found.parts
    return {"launcher": found.launcher or ("srun" if by_srun else "plain"), **found.parts}


def _read(words: list[str], found: _Found) -> None:
    """Read what the words start, up to the program itself."""
    while words and (words[0] in ("time", "env") or _ASSIGNMENT.match(words[0])):
        _assigned(words.pop(0), found)
        while words[:1] == ["-u"]:
            found.parts[f"task {words[1]}"] = "unset"
            words = words[2:]
    if not words:
        return
    head, rest = words[0].rpartition("/")[2], words[1:]
    if head == "srun":
        found.parts["by srun"] = "yes"
        _read(_options("srun", rest, found), found)
    elif head in _RUNTIMES:
        _read(_container(head, rest, found), found)
    elif head == "bash" and rest[:1] == ["-c"]:
        _read(_shell(rest[1], rest[2:], found), found)
    elif head.startswith("python") or head == "$python":
        if rest[:1] == ["-m"] and rest[1] in _STARTERS:
            _start(_STARTERS[rest[1]], rest[2:], found)
    elif head in _STARTERS:
        _start(_STARTERS[head], rest[1:] if rest[:1] == ["launch"] else rest, found)


def _start(launcher: str, words: list[str], found: _Found) -> None:
    found.launcher = launcher
    _read(_options(launcher, words, found), found)


def _options(owner: str, words: list[str], found: _Found) -> list[str]:
    """Note the options of `owner`; return the words after them."""
    words = list(words)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        word = _SAME.get(word, word)
        name, equals, value = word.partition("=")
        if not equals and name in _TAKES_A_WORD and words:
            value = words.pop(0)
        found.parts[f"{owner} {_SAME.get(name, name)}"] = _plain(value)
    return words


def _container(runtime: str, words: list[str], found: _Found) -> list[str]:
    """Note how the container is called; return the words after its image."""
    call, rest = [runtime, words[0]], list(words[1:])
    while rest and rest[0].startswith("-"):
        call.append(rest.pop(0))
        if call[-1] == "-B":
            call.append(rest.pop(0))
    found.parts["container"] = " ".join(call)
    return rest if runtime.endswith("_wrapper") else rest[1:]


def _shell(script: str, arguments: list[str], found: _Found) -> list[str]:
    """Note what a task's shell exports; return the words of what it starts."""
    if "taskset" in script:
        found.parts["bound by"] = "taskset"
    *before, last = [part.strip() for part in re.split(r";|&&", script) if part.strip()]
    for part in before:
        words = shlex.split(part.replace(r"\$", "$"), posix=True)
        if words[:1] == ["export"]:
            for word in words[1:]:
                _assigned(word, found)
    words = shlex.split(last.replace(r"\$", "$"))
    if "$@" not in words:
        return words
    words = words[1:] if words[:1] == ["exec"] else words
    place = words.index("$@")
    return [*words[:place], *arguments[1 + script.count("shift;") :], *words[place + 1 :]]


def _assigned(word: str, found: _Found) -> None:
    """Note a variable that a task, or a launcher, gets on the line."""
    name, equals, value = word.partition("=")
    if equals:
        found.parts[f"task {name}"] = _plain(value)


def _plain(value: str) -> str:
    """Return a value without the ways of writing a variable."""
    return re.sub(r"\$\{(\w+)\}", r"$\1", value.replace("\\$", "$").replace('"', ""))
