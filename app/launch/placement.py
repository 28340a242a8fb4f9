"""A job file at a site, with the parts of the profile it uses. Pure."""

import re
from dataclasses import dataclass, replace

from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import STRATEGIES, TRAINERS, Trainer
from lumitui.app.launch.launcher_templates import Launcher, launchers
from lumitui.remote.site.container import Container
from lumitui.remote.site.errors import InputError, meant
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site
from lumitui.remote.site.shell_text import quote


@dataclass(frozen=True)
class Placement:
    """A job file, its site, and the parts of the site that it uses."""

    spec: JobSpec
    site: Site
    partition: Partition
    launcher: Launcher
    container: Container | None
    """The container generation, adapted to the job's image; None: no container."""

    @property
    def runtime(self) -> Container | Site:
        """The environment of the ranks: the container, or the site itself."""
        return self.container or self.site

    @property
    def modules(self) -> tuple[str, ...]:
        """The shell lines that load modules, the profile's first."""
        own = " ".join(map(quote, self.spec.modules))
        return (*self.runtime.modules, *([f"module load {own}"] if own else []))

    @property
    def activations(self) -> tuple[str, ...]:
        """The shell lines that activate the job's environments outside a container."""
        words = () if self.container else self.spec.activate
        return tuple(f"lumitui_activate {quote(word)}" for word in words)

    @property
    def trainer(self) -> Trainer | None:
        """The bundled trainer; None for a user's own script."""
        return TRAINERS.get(self.spec.trainer or "")

    @property
    def whole_nodes(self) -> bool:
        """Whether the job has all of its nodes to itself."""
        if self.partition.allocation == "node" or self.spec.exclusive:
            return True
        return self.partition.whole_when_full and self._takes_all

    @property
    def _takes_all(self) -> bool:
        """Whether the job requests all GPUs and all cores of its nodes."""
        node, gpus = self.site.node, self.gpus_per_node
        tasks = gpus if self.launcher.tasks == "rank" else 1
        cores = (self.spec.cpus_per_task or 0) * tasks or self.site.cores_per_gpu * gpus
        return gpus == node.gpus and cores >= len(node.usable_cores)

    @property
    def gpus_per_node(self) -> int:
        """The requested GPUs per node, which may be more than a node has."""
        single = STRATEGIES[self.spec.strategy].single_rank or self.launcher.tasks == "one"
        return self.spec.gpus_per_node or (1 if single else self.site.node.gpus)

    @property
    def node_folder(self) -> str:
        """A folder local to each node, on the requested disk if the job requests one."""
        disk = self.site.local_disk
        return f"${{{disk.variable}}}" if disk and self.spec.local_disk else self.site.node_folder

    @property
    def preflight(self) -> str:
        """Whether the job measures GPUs and network first: `warn`, `end` or `off`."""
        return self.spec.preflight or self.site.preflight

    @property
    def torchrun_binding(self) -> str:
        """How torchrun's workers get their cores in this job: the profile's way, or `none`."""
        bound = self.whole_nodes and self.spec.binding != "none"
        return self.runtime.torchrun_binding if bound else "none"

    @property
    def image(self) -> str:
        """The path of the job's container image; "" without a container."""
        return (self.spec.container.image or self.container.image) if self.container else ""

    @property
    def resume_arguments(self) -> tuple[str, ...]:
        """The arguments that resume from the last checkpoint; empty if resuming is unsupported."""
        return self.spec.resume or (self.trainer.resume if self.trainer else ())


def placement_of(spec: JobSpec, site: Site) -> Placement:
    """Return the placement of `spec` at `site`; InputError if the site lacks a part of it."""
    launcher, container = _launcher_of(spec), _container_of(spec, site)
    if container and (len(spec.activate) > 1 or not all("/" in one for one in spec.activate)):
        raise InputError(
            "In a container only one virtual environment can be activated, by its folder.",
            "Write `activate: /folder/of/the/environment`, or run without a container: `container: "
            "{none: true}`.",
            field="activate",
        )
    place = Placement(spec, site, partition_of(spec, site), launcher, container)
    if launcher.binding == "torchrun" and place.torchrun_binding == "masks":
        return replace(place, launcher=replace(launcher, binding="wrapper", starts="command"))
    return place


def partition_of(spec: JobSpec, site: Site) -> Partition:
    """Return the job's partition; InputError if the site has none of that name."""
    if spec.partition in (site.other_partitions or ()):
        raise InputError(
            f"{spec.partition} at {site.name} has no nodes with {site.node.gpu}, the only kind "
            "that the profile describes.",
            f"Use one of {', '.join(site.partitions)}.",
            field="partition",
        )
    if spec.partition not in site.partitions:
        names = site.partitions
        raise InputError(
            f"{site.name} has no partition {spec.partition!r}.",
            f"{meant(spec.partition, names)}Use one of {', '.join(names)}.",
            field="partition",
        )
    return site.partitions[spec.partition]


def _launcher_of(spec: JobSpec) -> Launcher:
    """Return the job's launcher; InputError if there is none of that name."""
    if spec.launcher not in launchers():
        raise InputError(
            f"{spec.launcher!r} is not a launcher.",
            f"Use one of {', '.join(launchers())}.",
            field="launcher",
        )
    return launchers()[spec.launcher].on(spec.nodes)


def _container_of(spec: JobSpec, site: Site) -> Container | None:
    """Return the job's container for its image, or None; InputError if the site lacks it."""
    changes = spec.container.image or spec.container.binds or spec.container.venv
    only = next(iter(site.containers)) if changes and len(site.containers) == 1 else None
    name = spec.container.generation or site.default_container or only
    if name is None and changes and not spec.container.none:
        if site.containers:
            raise InputError(
                f"{site.name} has several container generations and no default.",
                f"Set one: `container: {{generation: {next(iter(site.containers))}}}`.",
                field="container.generation",
            )
        image = spec.container.image or "/path/of/image.sif"
        raise InputError(
            f"The profile of {site.name} has no `containers:`, so lumitui does not know how to "
            "start an image.",
            f"Add `containers: {{singularity: {{image: {image}, call: [singularity, exec]}}}}` to "
            "the profile; `lumitui docs sites` shows how. Or leave out `container:`.",
            field="container.image",
        )
    if spec.container.none or name is None:
        return None
    if name not in site.containers:
        names = ", ".join(site.containers) or "none"
        raise InputError(
            f"{site.name} has no container generation {name!r}.",
            f"Its generations: {names}.",
            field="container.generation",
        )
    container = site.containers[name]
    if not (spec.container.image or container.image):
        raise InputError(
            f"{site.name} has no default image for the generation {name!r}.",
            "Set yours: `container: {image: /path/of/image.sif}`, or run without a container: "
            "`container: {none: true}`.",
            field="container.image",
        )
    _check_binds(spec, site, container)
    for variant in container.variants:
        if re.search(variant.matches, spec.container.image or container.image):
            update = variant.model_dump(exclude={"matches"}, exclude_none=True)
            return container.model_copy(update=update)
    return container


def _check_binds(spec: JobSpec, site: Site, container: Container) -> None:
    """Raise InputError if a job binds folders, but the site's containers ignore binds."""
    binds = {"container.binds": bool(spec.container.binds), "container.venv":
              bool(spec.container.venv), "venv": spec.venv is not None}  # fmt: skip
    for field, used in binds.items():
        if used and not container.takes_binds:
            raise InputError(
                f"`{field}:` has no effect at {site.name}: its containers mount only what their "
                "own file lists.",
                f"Omit it, and list the folders as `mounts` in {spec.container.image}.",
                field=field,
            )
