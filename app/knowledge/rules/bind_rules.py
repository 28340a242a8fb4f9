"""Rules about what a container sees of the file systems, and what a bind hides of the image."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.allocation import (
    generation_of,
    generations_of,
    has_unknown_sources,
)
from lumitui.remote.site.container import Container
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE, Position

_LOADS = re.compile(r"^module\s+load\s+(.+)$")
_BIND_VARIABLES = ("SINGULARITY_BIND", "SINGULARITY_BINDPATH", "APPTAINER_BIND",
                   "APPTAINER_BINDPATH")  # fmt: skip
_SHARED = re.compile(r"^/(scratch|flash|project|projappl|pfs|work|gpfs|leonardo_work|mnt)\b")


def _modules_of(container: Container) -> set[str]:
    """Return the modules that a generation loads, without versions."""
    found = set[str]()
    for line in container.modules:
        match = _LOADS.match(line)
        found |= {word.partition("/")[0] for word in match[1].split()} if match else set()
    return found


def _loaded(job: ScriptJob) -> set[str]:
    return {name.partition("/")[0] for name in job.modules}


@rule(
    "modules-of-other-generation",
    "warning",
    "the modules of one generation of images with an image of another",
    why="The modules bind and set what their own images need. With others, libraries of the "
    "network are missing or take precedence over the image's own.",
    source="the site's profile, containers; LUMI-training-materials, 205-Containers",
)
def modules_of_other_generation(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find an old bindings module with a new image, or both modules at once."""
    for _image, name, container in generations_of(job, site):
        own = _modules_of(container)
        for other, item in site.containers.items():
            foreign = sorted((_modules_of(item) - own) & _loaded(job))
            if other != name and foreign:
                yield Hit(
                    f"The image belongs to the generation {name}, and {foreign[0]} to {other}.",
                    f"Load {' '.join(sorted(own)) or 'no module'} instead.",
                    _place(job, foreign[0]),
                )
        return


def _place(job: ScriptJob, name: str) -> Position:
    """Return where a module is loaded."""
    for command in job.commands:
        for word in command.words:
            if command.program in ("module", "ml") and word.known.partition("/")[0] == name:
                return word.at
    return NOWHERE


@rule(
    "no-binds",
    "error",
    "a container that sees none of the shared file systems",
    why="Without the site's module or -B a container sees home and the current folder: data and "
    "programs elsewhere are `No such file or directory`.",
    source="the site's profile, containers.modules; LUMI user guide, storage",
)
def no_binds(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find an image of the site without its bindings module and without -B."""
    if has_unknown_sources(job) or any(job.variable(name) for name in _BIND_VARIABLES):
        return
    for step in job.steps:
        call = step.container
        generation = generation_of(call.image.known, site) if call and call.image else None
        if call is None or generation is None or call.binds or not step.trains:
            continue
        own = _modules_of(generation[1])
        binds = any(re.search(r"singularity|apptainer|bind|container", name, re.IGNORECASE)
                    for name in _loaded(job))  # fmt: skip
        if not own or binds or own & _loaded(job):
            continue
        words = [step.program, *step.arguments] if step.program else [*step.arguments]
        texts = [*(word.known for word in words), *(item.value for item in job.variables)]
        names = [text for text in texts if _SHARED.match(text.rpartition("=")[2])
                 and not text.endswith(".sif")]  # fmt: skip
        if names:
            yield Hit(
                f"The container does not see {names[0].rpartition('=')[2]}: nothing binds the file "
                "system.",
                f"Load {' '.join(sorted(own))} before it.",
                call.at if call.at.line else step.at,
            )
            return
