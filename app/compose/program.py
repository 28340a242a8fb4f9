"""What the launcher starts: the command line of the job's program, as shell words. Pure."""

import re
from dataclasses import dataclass

from lumitui.app.compose.container import container_of
from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import TRAINERS
from lumitui.remote.errors import InputError
from lumitui.remote.run_folder import DEEPSPEED_CONFIG, PROBE_SCRIPT
from lumitui.remote.site.profile import Site
from lumitui.remote.transport.shell import quote

BUNDLED = ".lumitui/trainers"
"""Where a bundled trainer lies in a run's code."""


@dataclass(frozen=True)
class Program:
    """What the launcher starts, as shell words."""

    command: str
    """The whole command line."""
    path: str = ""
    arguments: str = ""
    is_python: bool = False


PROBE = Program(f'sh "$RUN_DIR/{PROBE_SCRIPT}"')
"""What measures each rank's cores and GPU before the job's own program starts."""


def program_of(spec: JobSpec, site: Site, *, has_config: bool) -> Program:
    """Return the job's own program; `has_config`: it gets a DeepSpeed configuration.

    Raises:
        InputError: the code is an archive, and the site has no folder to unpack it in.
    """
    bundled = TRAINERS.get(spec.trainer or "")
    path = f"{BUNDLED}/{bundled.file}" if bundled else spec.script or ""
    words = [quote(word) for word in spec.args]
    if has_config:
        words += ["--deepspeed", "--deepspeed_config", f'"$RUN_DIR/{DEEPSPEED_CONFIG}"']
    if resume_arguments(spec):
        # The long form: an empty array is "unbound" for bash before 4.4 under set -u.
        words.append('${resume[@]+"${resume[@]}"}')
    arguments = "".join(f" {word}" for word in words)
    quoted = f"{code_folder(spec, site)}/{quote(path)}"
    if not path.endswith(".py"):
        return Program(f"{quoted}{arguments}")
    command = f"{interpreter(spec, site)} {quoted}{arguments}"
    return Program(command, quoted, arguments, is_python=True)


def resume_arguments(spec: JobSpec) -> tuple[str, ...]:
    """Return the arguments that continue from the last checkpoint; empty: the program cannot."""
    bundled = TRAINERS.get(spec.trainer or "")
    return spec.resume or (bundled.resume if bundled else ())


def code_folder(spec: JobSpec, site: Site) -> str:
    """Return where the code lies while the job runs, as a shell word.

    Raises:
        InputError: the code is an archive, and the site has no folder to unpack it in.
    """
    if spec.ship != "archive":
        return '"$RUN_DIR"/code'
    if not site.node_folder:
        raise InputError(
            f"{site.name}'s profile names no folder of the nodes for a project sent as an archive.",
            "Exclude data in .lumituiignore and reach it with `links:`, or set `node_folder:`.",
        )
    return '"$CODE"'


def interpreter(spec: JobSpec, site: Site) -> str:
    """Return the Python of the job's container or site as a shell word; `${NAME}` expands."""
    container = container_of(spec, site)
    python = container.python if container else site.python
    return python if re.match(r"^[\w./-]+$", python) else expand(python)


def expand(text: str) -> str:
    """Return a profile's value as a double-quoted shell word: `$NAME` and `${NAME}` expand."""
    text = re.sub(r'([\\"`])', r"\\\1", text).replace("$(", "\\$(")
    return f'"{text}"'
