"""A rule about what a container sees of the file systems."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.allocation import (
    generation_of,
    has_unknown_sources,
)
from lumitui.remote.site.container import Container
from lumitui.remote.site.profile import Site

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
