"""The environments of a site's programs: containers, image listings, virtual environments."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lumitui.remote.site.facts import Count, Facts, Pattern, WholePath, WorkPath, fills
from lumitui.remote.site.node import Precision


def _glob(text: str) -> str:
    if not text.startswith("/") or set(text) & set("'\"\\$`;&|<>()\n \t"):
        raise ValueError(f"{text!r} must be a full path; it may contain the wildcards * ? [ ]")
    return text


Glob = Annotated[str, AfterValidator(_glob)]
"""A path from /, with `*`, `?` and `[…]` as in a shell."""
ByMinor = Annotated[str, Field(pattern=r"^(3\.\d{1,2})?$")]
"""A version of Python like `3.12`; empty: it is not known."""


class ImageListing(Facts):
    """Where the images of a generation are, and how to determine their contents."""

    paths: Annotated[tuple[Glob, ...], Field(min_length=1)]
    """Image files, e.g. `[/appl/containers/*.sif]`."""
    names: Pattern | None = None
    """A regular expression to search in an image's path. A group `torch` contains a version, and
    `torch_minor` the part after its first dot; likewise for any other name. None: the names do not
    show versions."""
    asked: bool = True
    """Whether a Python in the image may be started on the login node to list its packages."""


class VenvRecipe(Facts):
    """How `venv:` of a job file becomes an environment at this site."""

    build: Literal["job", "login"] = "job"
    """Where it is built: on the login host before the job is submitted, or in the job."""
    index: bool = True
    """Whether a package index can be reached where it is built; if not, wheels must be sent."""
    python: ByMinor = ""
    """The Python version of the site's modules, to detect wheels that would not fit."""
    create: Annotated[str, fills("python", "folder")] = (
        "{python} -m venv --without-pip --system-site-packages {folder}"
    )
    """Creates an empty environment that sees the packages of the image or the modules."""
    squash: Annotated[str, fills("folder", "file")] = (
        "mksquashfs {folder} {file} -processors 1 -no-xattrs -quiet -no-progress"
    )
    """Packs it into one file, if a container mounts it."""
    environment: dict[str, str] = Field(default={})
    """Exported during the build; `$NAME` is expanded."""
    keeps: tuple[str, ...] = (
        "torch", "torchvision", "torchaudio", "triton", "pytorch-triton", "pytorch-triton-rocm",
        "deepspeed", "flash-attn",
    )  # fmt: skip
    """Packages built for the site's GPUs: pip installs no other version of them unless the job file
    lists it."""
    folder: WorkPath | Literal[""] = ""
    """Folder of the environments; empty: beside the runs, below `work_root`. Users who share a
    folder must trust each other, because jobs run whatever it contains."""
    minutes: Count = 20
    """How long a build may take."""


class Mpi(Facts):
    """The mpirun of a site, for the launcher of that name."""

    kind: Literal["openmpi", "hydra"]
    """Its kind of options: Open MPI's, or Hydra's, as in MPICH and Intel MPI."""
    command: str = "mpirun"
    """Its name or path on the nodes."""
    modules: tuple[str, ...] = ()
    """Shell lines that make the command available."""


class ImageVariant(Facts):
    """The difference of some images of a generation; None: same as the others."""

    matches: Pattern
    """A regular expression on the image's path."""
    torchrun_binding: Literal["numa", "masks", "script", "none"] | None = None
    """As in the generation."""
    torchrun_signals: bool | None = None
    """As in the generation."""
    doubtful_precisions: dict[Precision, str] = Field(default={})
    """Formats that these images compute incorrectly, each with the effect, as the end of a
    sentence."""
    drop_environment: tuple[str, ...] | None = None
    """As in the generation; replaces its list."""
    forbidden_environment: tuple[str, ...] | None = None
    """As in the generation; replaces its list."""


class Container(Facts):
    """One generation of a site's containers, whose parts must not be mixed with another's."""

    image: str
    """The default image; empty: each job must set one."""
    images: Pattern | None = None
    """A regular expression that matches the path of every image of this generation and of no other;
    None: the names do not show the generation."""
    listing: ImageListing | None = None
    """How `lumitui site images` finds the generation's images; None: it lists only `image`."""
    variants: tuple[ImageVariant, ...] = ()
    """Images that need other options; the first match counts."""
    call: tuple[str, ...]
    """The words before the image, e.g. `singularity run`."""
    takes_binds: bool = True
    """Whether `-B SOURCE:INSIDE` may follow `call`. False: an image's own file lists its mounts,
    and lumitui refuses a job file with `binds:` or an environment."""
    modules: tuple[str, ...] = ()
    """Shell lines that make the container command and its binds available."""
    environment: dict[str, str] = Field(default={})
    """Exported in the job script; `$NAME` is expanded there, on the first node."""
    activate: str = ""
    """A command run inside the container before the program, e.g. `$WITH_CONDA`."""
    python: str = "python"
    """The interpreter inside the container, by name or path, e.g. `python3`."""
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
    """A remark that `lumitui site show` prints, as a sentence."""
