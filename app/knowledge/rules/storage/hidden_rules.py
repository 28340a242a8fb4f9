"""The rule about binds that take an image's own folders away."""

import posixpath
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.source_position import Position
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_OF_IMAGE = frozenset(
    ("/", "/bin", "/etc", "/lib", "/lib64", "/opt", "/sbin", "/usr", "/usr/bin", "/usr/lib",
     "/usr/lib64", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/var", "/opt/venv",
     "/opt/conda", "/opt/miniconda3", "/usr/lib/x86_64-linux-gnu", "/usr/local/cuda")
)  # fmt: skip
"""Where an image has its Python, its libraries, and ROCm or CUDA."""
_BIND_VARIABLES = ("SINGULARITY_BIND", "SINGULARITY_BINDPATH", "APPTAINER_BIND",
                   "APPTAINER_BINDPATH")  # fmt: skip


@rule(
    "bind-hides-image",
    "error",
    "a bind over a folder of the image's own",
    why="What is bound takes the folder's place: Python, ROCm or CUDA, and the libraries that "
    "every program needs are gone, and nothing starts.",
    source="apptainer.org/docs/user, Bind Paths and Mounts",
)
def bind_hides_image(job: Job, site: Site) -> Iterator[Hit]:
    """Find `-B /scratch/tools:/opt`."""
    for source, inside, at in dict.fromkeys(_binds(job)):
        if inside in _OF_IMAGE:
            name = posixpath.basename(source.rstrip("/")) or "host"
            yield Hit(
                f"The bind of {source} to {inside} hides the image's own {inside}: its Python and "
                "libraries are gone.",
                f"Bind it to a folder that the image does not have, like /{name}-here.",
                at,
            )


def _binds(job: Job) -> Iterator[tuple[str, str, Position]]:
    """Yield what is bound, its folder inside the container, and where it is written."""
    found = [(word.known, word.at) for step in job.steps if step.container
             for word in step.container.binds]  # fmt: skip
    found += [(item.value, item.at) for item in job.settings(*_BIND_VARIABLES)]
    for text, at in found:
        for part in text.split(","):
            source, _, rest = part.partition(":")
            inside = rest.partition(":")[0] or source
            if "image-src=" not in part and inside.startswith("/"):
                yield source, posixpath.normpath(inside), at


RULES: tuple[Rule, ...] = (bind_hides_image,)
"""Every rule of this subject."""
