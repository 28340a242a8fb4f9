"""What a command needs to run beside a launch's program. Pure."""

from dataclasses import dataclass

from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.placement import placement_of
from lumitui.app.launch.script import staged
from lumitui.app.launch.script.program_call import container_call
from lumitui.remote.site.profile import Site


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
    """Return the environment of a job file's program at `site`.

    Raises:
        InputError: the profile no longer has what the job file names.
    """
    place = placement_of(spec, site)
    container = place.container
    if container is None:
        return ProgramPlace("", "", "")
    has_venv = bool(spec.venv or spec.container.venv)
    return ProgramPlace(
        container_call(place),
        staged.word(place.image, spec.stage),
        "" if has_venv else container.activate,
    )
