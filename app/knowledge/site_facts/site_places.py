"""What a job finds at a site: the generation of its image, and where large files belong. Pure."""

import re

from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.container import Container
from lumitui.remote.site.profile import Site


def generation_of(image: str, site: Site) -> tuple[str, Container] | None:
    """Return the generation of containers that an image belongs to; None: its path tells none."""
    for name, container in site.containers.items():
        if image and image == container.image:
            return name, container
        if container.images and re.search(container.images, image):
            return name, container
    return None


def site_says(site: Site, name: str) -> bool:
    """Whether a rule of the site's own is about this variable, and says more than a general one."""
    return any(rule.field == f"env.{name}" for rule in site.rules)


def work_folder(job: ScriptJob, site: Site) -> str:
    """Return where the project's large files belong, as words for a user."""
    folder = site.work_root.partition("/{user}")[0]
    return folder.replace(
        "{account}", site.account.in_path(job.resources.account or "") or "PROJECT"
    )


def has_unknown_sources(job: ScriptJob) -> bool:
    """Whether the script reads another one whose text is not at hand, which may set anything."""
    harmless = re.compile(r"(activate|conda\.sh|\.bashrc|\.bash_profile|lmod|profile)$")
    return any(
        command.program in (".", "source")
        and command.words
        and command.words[0].known not in job.files
        and not harmless.search(command.words[0].known)
        for command in job.commands
    )
