"""The container that the ranks run in: which one it is, and how it is called. Pure."""

import re

from lumitui.app.job.spec import JobSpec
from lumitui.remote.errors import InputError
from lumitui.remote.site.container import Container
from lumitui.remote.site.profile import Site
from lumitui.remote.transport.shell import quote


def container_of(spec: JobSpec, site: Site) -> Container | None:
    """Return the container generation the job runs in, adapted to its image; None: no container.

    Raises:
        InputError: the site has no such generation.
    """
    name = spec.container.generation or site.default_container
    wanted = spec.container.image or spec.container.binds or spec.container.venv
    if name is None and wanted and not spec.container.none:
        raise InputError(
            f"{site.name} has no containers, so that `container:` would be left out.",
            "Remove it, or give the profile a container generation.",
        )
    if spec.container.none or name is None:
        return None
    if name not in site.containers:
        known = ", ".join(site.containers) or "none"
        raise InputError(f"{site.name} has no container generation {name!r}.", f"It has {known}.")
    container = site.containers[name]
    for variant in container.variants:
        if re.search(variant.matches, spec.container.image or container.image):
            update = variant.model_dump(exclude={"matches"}, exclude_none=True)
            return container.model_copy(update=update)
    return container


def container_call(spec: JobSpec, container: Container | None) -> str:
    """Return the shell words before the program that start it inside `container`; "" for None."""
    if container is None:
        return ""
    words = [quote(word) for word in container.call]
    if spec.container.venv:
        words += ["-B", quote(f"{spec.container.venv}:{container.venv_mount}:image-src=/")]
    for bind in spec.container.binds:
        words += ["-B", quote(bind)]
    return " ".join([*words, '"$SIF"'])


def container_environment(spec: JobSpec, site: Site, container: Container | None) -> dict[str, str]:
    """Return the variables that the profile sets for the ranks, without the job file's own."""
    values = dict(site.environment)
    if container:
        values |= container.environment
        if spec.container.venv:
            values |= container.venv_environment
    # Lines reach the log as they are printed; without this, Python keeps 8 KiB back.
    values.setdefault("PYTHONUNBUFFERED", "1")
    return {name: value for name, value in values.items() if name not in spec.env}
