"""How a container is named: its program or a site's wrapper, its image, its binds."""

import re
from collections.abc import Sequence

from lumitui.app.knowledge.bash.options import program_options
from lumitui.app.knowledge.bash.words.expand import ExpandedWord
from lumitui.app.knowledge.script_job import CommandOptions, CommandWord, ContainerCall
from lumitui.remote.site.source_position import Position

PYTHON = re.compile(r"python(\d(\.\d+)?)?t?$")
"""The name of an interpreter."""
CONTAINERS = {"singularity", "apptainer", "podman-hpc", "podman", "shifter", "enroot", "docker"}
"""The programs that enter one."""
WRAPPER = re.compile(r"\w*(singularity|apptainer)\w*$")
"""A site's wrapper of one of them, like `singularity_wrapper`."""
_IMAGE = re.compile(r"\.(sif|simg|img|sqsh|squashfs)$|^[a-z]+://")


def name_of(argument: ExpandedWord) -> str:
    """Return a program's name without its folder."""
    return argument.text.rstrip("/").rsplit("/", 1)[-1]


def of_srun(options: CommandOptions) -> ContainerCall | None:
    """Return the container that srun itself enters, by a plugin."""
    option = options.get("container-image", "environment", "uenv", "container")
    if option is None or option.value is None:
        return None
    binds = binds_of(options, "container-mounts")
    program = "pyxis" if option.name == "container-image" else option.name
    return ContainerCall(program, "", word_of(option.value, option.at), options, binds, option.at)


def is_image(words: Sequence[ExpandedWord], *, own: bool) -> bool:
    """Return whether the first word is an image; a site's wrapper may know its `own`."""
    first = words[0].text
    if not own or _IMAGE.search(first):
        return not is_program(name_of(words[0]))
    following = len(words) > 1 and is_program(name_of(words[1]))
    return following and not is_program(name_of(words[0]))


def is_program(name: str) -> bool:
    """Return whether this is a shell, an interpreter or a launcher."""
    starters = (*program_options.SHELLS, "torchrun", "deepspeed", "accelerate")
    return bool(PYTHON.match(name)) or name in starters


def binds_of(options: CommandOptions, *names: str) -> tuple[CommandWord, ...]:
    """Return what these options bind."""
    return tuple(
        word_of(part, option.at)
        for option in options.all
        if option.name in names and option.value
        for part in option.value.split(",")
        if part
    )


def word_of(text: str, at: Position) -> CommandWord:
    """Return a word that is known where nothing in it is expanded."""
    return CommandWord(text, at, value=None if "$" in text or "`" in text else text)
