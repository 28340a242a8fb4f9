"""The unknown site: only site-independent rules run for a job there.

A rule ends when it reads a fact of the site; its earlier findings stay.
"""

from typing import Any

from lumitui.remote.site.node import NodeShape
from lumitui.remote.site.profile import Site

_FACTS = frozenset({
    "name", "title", "hosts", "account", "work_root", "cores_per_gpu", "launchers", "gpu_request",
    "visible_gpus", "cores", "usable_cores", "reserved_cores", "memory_gib", "gpus", "gpu",
    "gpu_vendor", "gpu_memory_gib", "gpu_cores", "gpu_numa", "architecture", "threads_per_core",
    "local_disk", "replaced_by",
})  # fmt: skip
"""Facts that differ between sites. The others have a profile's defaults."""


class SiteNotKnownError(Exception):
    """A rule requested a fact about an unknown site."""


class _Node(NodeShape):
    def __getattribute__(self, name: str) -> Any:
        if name in _FACTS:
            raise SiteNotKnownError(name)
        return super().__getattribute__(name)


class _AnySite(Site):
    def __getattribute__(self, name: str) -> Any:
        if name in _FACTS:
            raise SiteNotKnownError(name)
        return super().__getattribute__(name)


def any_site() -> Site:
    """Return the site of a script that does not identify one."""
    return _AnySite.model_construct(partitions={}, node=_Node.model_construct())


def is_known(site: Site) -> bool:
    """Return whether the user or the script identifies the site."""
    return not isinstance(site, _AnySite)
