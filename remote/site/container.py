"""The containers of a site, one generation each: image, modules and options that fit together."""

from typing import Literal

from pydantic import Field

from lumitui.remote.site.environments import ByMinor, ImageListing
from lumitui.remote.site.facts import Facts, Pattern, WholePath
from lumitui.remote.site.node import Precision


class ImageVariant(Facts):
    """How some images of a generation differ; None: as the others."""

    matches: Pattern
    """A regular expression on the image's path."""
    torchrun_binding: Literal["numa", "masks", "script", "none"] | None = None
    torchrun_signals: bool | None = None
    doubtful_precisions: dict[Precision, str] = Field(default={})
    """Formats that these images compute badly, each with what happens, as the end of a sentence."""
    drop_environment: tuple[str, ...] | None = None
    forbidden_environment: tuple[str, ...] | None = None


class Container(Facts):
    """One generation of a site's containers: what belongs together, never mixed."""

    image: str
    """The image of a job that names none; empty: each job must name one."""
    images: Pattern | None = None
    """A regular expression that matches the path of every image of this generation and of no
    other; None: the names do not show the generation."""
    listing: ImageListing | None = None
    """How `lumitui site images` finds the generation's images; None: only `image` is shown."""
    variants: tuple[ImageVariant, ...] = ()
    """Images that need other options; the first match counts."""
    call: tuple[str, ...]
    """The words before the image, e.g. `singularity run`."""
    takes_binds: bool = True
    """Whether `-B SOURCE:INSIDE` may be after `call`. False: an image's own file says what it
    mounts, and a job file with `binds:` or an environment is refused."""
    modules: tuple[str, ...] = ()
    """Shell lines that make the container command and its binds available."""
    environment: dict[str, str] = Field(default={})
    """Exported in the job script; `$NAME` is expanded there, on the first node."""
    activate: str = ""
    """A command run inside the container before the program, e.g. `$WITH_CONDA`."""
    python: str = "python"
    python_version: ByMinor = ""
    """The version of that Python, where the images of the generation have one."""
    torchrun_binding: Literal["numa", "masks", "script", "none"] = "none"
    """How torchrun's workers get their cores: its own `--numa-binding`; `masks`, by which each
    binds itself; the training script; or not at all."""
    torchrun_signals: bool = False
    """Whether its torchrun has `--signals-to-handle` (torch 2.10 and newer): without it SIGUSR1
    kills the agent and leaves its ranks running, so that they are sent SIGTERM instead."""
    drop_environment: tuple[str, ...] = ()
    """Variables of the site or of this generation that its images do not need."""
    venv_mount: WholePath = "/user-software"
    """Where a squashed environment is mounted inside."""
    venv_environment: dict[str, str] = Field(default={})
    """Exported besides `environment` when a squashed environment is mounted."""
    forbidden_environment: tuple[str, ...] = ()
    """Variables known to break this generation on several nodes."""
    note: str = ""
