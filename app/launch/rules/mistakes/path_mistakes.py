"""The rule about paths of a laptop in a job file, which no cluster has."""

import re
from collections.abc import Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.launch_rule import LaunchRule
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.source_position import at_key

_LAPTOP = re.compile(
    r"(?:^|[=:,])(?P<path>/Users/[^/\s,:]+/?[^\s,:]*|[A-Za-z]:[\\/][^\s,]+|"
    r"/mnt/[a-z]/Users/[^\s,:]+|/content/(?:drive|sample_data)[^\s,:]*|/kaggle/[^\s,:]+)"
)
"""Paths of macOS, Windows, WSL, Colab and Kaggle."""


def _laptop(launch: Launch, place: Placement) -> Iterator[Finding]:
    if place.site.scheduler != "slurm":
        return
    for key, text in _words(launch.spec):
        match = _LAPTOP.search(text)
        if match:
            yield Finding(
                "laptop-path",
                "error",
                f"`{key}:` names {match['path']}, a path of a laptop, which {place.site.name} does "
                "not have.",
                "Let `stage:` send it, like `stage: {DATA: "
                f"{match['path']}}}` and $STAGE_DATA in `args:`; or write its path on the site.",
                "docs/scripts.md; the site's profile, work_root",
                at=at_key(key),
            )


def _words(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield what a job file says of paths on the site, each with its key."""
    yield from (("args", text) for text in spec.args)
    yield from (("resume", text) for text in spec.resume)
    yield from ((f"env.{name}", text) for name, text in spec.env.items())
    yield from ((f"links.{name}", text) for name, text in spec.links.items())
    yield from (("container.binds", bind.partition(":")[0]) for bind in spec.container.binds)
    for key, path in (("image", spec.container.image), ("venv", spec.container.venv)):
        if path:
            yield f"container.{key}", path


RULES: tuple[LaunchRule, ...] = (_laptop,)
