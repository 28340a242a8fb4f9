"""The shell words of job.sh: the container's command, the program's, and staged paths. Pure."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lumitui.app.job.launch import RankLayout
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.launcher_templates import Launcher
from lumitui.app.launch.placement import Placement, placement_of
from lumitui.remote.site import walltime
from lumitui.remote.site.container import Mpi
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import DEEPSPEED_CONFIG, PREFLIGHT_SCRIPTS, PROBE_SCRIPT
from lumitui.remote.site.shell_text import quote

VARIABLE = re.compile(r"\$(?:\{STAGE_([A-Z0-9_]+)\}|STAGE_([A-Z0-9_]+))")


def word(text: str, names: Collection[str]) -> str:
    """Return `text` as one shell word, in which only `$STAGE_NAME` of the `names` expands."""
    parts, at = list[str](), 0
    for match in VARIABLE.finditer(text):
        name = match[1] or match[2]
        if name in names:
            parts += [quote(text[at : match.start()])] if match.start() > at else []
            parts.append(f'"$STAGE_{name}"')
            at = match.end()
    if not parts or at < len(text):
        parts.append(quote(text[at:]))
    return "".join(parts)


def named_in(text: str) -> Iterator[str]:
    """Yield the names of the staged items in `text`."""
    for match in VARIABLE.finditer(text):
        yield match[1] or match[2]


def link_target(link: str, name: str) -> str:
    """Return the target of a `link` below the code: the relative path to the staged `name`."""
    return "../" * (link.strip("/").count("/") + 1) + f"stage/{name}"


_IN_VENV = '"$VENV"/bin/python'
BUNDLED = ".lumitui/trainers"
"""The folder of the bundled trainers in a run's code."""


@dataclass(frozen=True)
class ProgramCall:
    """A program for the launcher to start, as shell words."""

    command: str
    script: str = ""
    """The command line without the interpreter, for a Python script."""

    def words_for(self, launcher: Launcher) -> str:
        """Return the words that follow those of `launcher`."""
        if launcher.starts == "command":
            return self.command
        return self.script or f"--no-python {self.command}"


def preflight_of(place: Placement, layout: RankLayout) -> ProgramCall:
    """Return the preflight, which measures GPUs and network in the program's environment."""
    node = place.site.node
    words = [f"--gpus={0 if layout.on_cpu else layout.gpus_per_node}"]
    if layout.gpu_bus:
        words.append(f"--bus={','.join(layout.gpu_bus)}")
    if node.gemm_tflops:
        words.append(f"--gemm={node.gemm_tflops:g}")
    # The profile's figures are for all GPUs of a node.
    if node.links and layout.gpus_per_node == node.gpus:
        words += [f"--in-node={node.links.in_node:g}", f"--all-nodes={node.links.between_nodes:g}"]
    command = " ".join([f'"$RUN_DIR"/{PREFLIGHT_SCRIPTS[0]}', *words])
    return ProgramCall(f"{interpreter(place)} {command}", command)


PROBE = ProgramCall(f'sh "$RUN_DIR/{PROBE_SCRIPT}"')
"""The probe, which measures each rank's cores and GPU before the program starts."""


_HELD = ProgramCall("""sh -c 'until [ -e "$RUN_DIR/stop" ]; do sleep 5; done'""")
"""Command of each rank of a job with `debug:`, so that a shell finds the rank's environment."""


def program_of(place: Placement, *, has_config: bool) -> ProgramCall:
    """Return the job's own program; with `has_config`, also DeepSpeed's arguments."""
    spec, bundled = place.spec, place.trainer
    if spec.debug:
        return _HELD
    path = f"{BUNDLED}/{bundled.file}" if bundled else spec.script or ""
    words = [word(text, spec.stage) for text in spec.args]
    if has_config:
        words += ["--deepspeed", "--deepspeed_config", f'"$RUN_DIR/{DEEPSPEED_CONFIG}"']
    if place.resume_arguments:
        words.append('"${resume[@]}"')
    arguments = "".join(f" {word}" for word in words)
    quoted = f'"$RUN_DIR"/code/{quote(path)}'
    if not path.endswith(".py"):
        return ProgramCall(f"{quoted}{arguments}")
    return ProgramCall(f"{interpreter(place)} {quoted}{arguments}", f"{quoted}{arguments}")


def interpreter(place: Placement) -> str:
    """Return the ranks' Python as a shell word: the environment's, if there is one."""
    if place.spec.venv is None:
        return own_python(place)
    return quote(f"{place.container.venv_mount}/bin/python") if place.container else _IN_VENV


def own_python(place: Placement) -> str:
    """Return the job's own Python, or that of its container or site, as a shell word."""
    if place.spec.python:
        return quote(place.spec.python)
    python = "python" if place.spec.activate else place.runtime.python
    return python if re.match(r"^[\w./-]+$", python) else expand(python)


def mpi_of(place: Placement) -> Mpi | None:
    """Return the site's mpirun, for the launcher that calls it; InputError if there is none."""
    if place.launcher.tasks != "slot":
        return None
    if place.site.mpi is None:
        raise InputError(
            f"The profile of {place.site.name} has no mpirun.",
            "Add `mpi: {kind: openmpi, command: mpirun}` to the profile, or use `launcher: srun`.",
            field="launcher",
        )
    return place.site.mpi


def gpu_numbers(place: Placement, layout: RankLayout) -> str:
    """Return the numbers of a node's GPUs as a shell word, for a launcher that assigns them.

    Slurm lists the job's GPUs in CUDA_VISIBLE_DEVICES; they need not count from 0.
    """
    numbers = ",".join(map(str, range(layout.ranks_per_node)))
    nvidia = place.site.visible_gpus == "CUDA_VISIBLE_DEVICES" and not layout.on_cpu
    return f'"${{CUDA_VISIBLE_DEVICES:-{numbers}}}"' if nvidia else numbers


def container_call(place: Placement) -> str:
    """Return the shell words that start a program in the container; "" without a container."""
    spec, container = place.spec, place.container
    if container is None:
        return ""
    words = [quote(word) for word in container.call]
    if not container.takes_binds:
        return " ".join([*words, '"$SIF"'])
    if spec.container.venv:
        words += ["-B", quote(f"{spec.container.venv}:{container.venv_mount}:image-src=/")]
    if spec.venv:
        words += ["-B", '"$VENV":' + quote(f"{container.venv_mount}:image-src=/")]
    for bind in spec.container.binds:
        words += ["-B", quote(bind)]
    for name in spec.stage:  # the store may be outside the folders that the profile binds
        words += ["-B", f'"$STAGE_{name}"'] if name not in named_in(place.image) else []
    return " ".join([*words, '"$SIF"'])


def container_environment(place: Placement) -> dict[str, str]:
    """Return the variables that the profile sets for the ranks, without the job file's own."""
    spec, container = place.spec, place.container
    values = dict(place.site.environment)
    if not place.site.internet_on_compute_nodes:
        values |= place.site.offline_environment
    if container:
        values |= container.environment
        if spec.container.venv or spec.venv:
            values |= container.venv_environment
        values = {k: v for k, v in values.items() if k not in container.drop_environment}
    if spec.hang and place.trainer:
        values["TRAINER_HANG_SECONDS"] = str(walltime.seconds_of(spec.hang))
    if spec.venv:
        values.setdefault("PYTHONNOUSERSITE", "1")  # ignore packages in the home folder
    # Without this, Python buffers 8 KiB before lines reach the log.
    values.setdefault("PYTHONUNBUFFERED", "1")
    return {name: value for name, value in values.items() if name not in spec.env}


def expand(text: str) -> str:
    """Return a profile's value as a double-quoted shell word: `$NAME` and `${NAME}` expand."""
    text = re.sub(r'([\\"`])', r"\\\1", text).replace("$(", "\\$(")
    return f'"{text}"'


@dataclass(frozen=True)
class ProgramPlace:
    """The environment of a launch's program, as shell words."""

    container: str
    """The command that starts a program in the container; "" without one."""
    image: str
    """The container's image, which is `$SIF` in `container`."""
    activate: str
    """The command that runs in the container before the program."""


def program_place(spec: JobSpec, site: Site) -> ProgramPlace:
    """Return the environment of a job's program at `site`; InputError if a name is undefined."""
    place = placement_of(spec, site)
    container = place.container
    if container is None:
        return ProgramPlace("", "", "")
    has_venv = bool(spec.venv or spec.container.venv)
    return ProgramPlace(
        container_call(place), word(place.image, spec.stage), "" if has_venv else container.activate
    )
