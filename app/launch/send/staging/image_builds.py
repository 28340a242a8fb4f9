"""Container images that are built on the laptop, for sites whose machines reach no registry."""

import hashlib
import os
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site

DEFINITION = ".def"
"""How the name of a container's definition ends."""
_PROGRAMS = ("apptainer", "singularity")
_COMMAND = "{program} build {image} {definition}"
_WORDS = 3  # lines of a build's end that an error shows


def image_command(site: Site) -> list[str]:
    """Return the words that build an image for `site`; `{image}` and `{definition}` are in them.

    They are the profile's `commands: build_image`, where it has one.

    Raises:
        InputError: no program here builds images.
    """
    text = site.commands.get("build_image", _COMMAND)
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if "{program}" in text and program is None:
        by_hand = text.format(program="apptainer", image="IMAGE.sif", definition="FILE.def")
        raise InputError(
            "This image must be built here, but neither apptainer nor singularity is installed.",
            f"Run `{by_hand}` on a machine that has one, and name IMAGE.sif in `stage:`.",
        )
    words = shlex.split(text)
    if "{program}" not in text and shutil.which(words[0]) is None:
        raise InputError(
            f"The profile of {site.name} builds images with {words[0]}, which is not installed.",
            f"Install it, or run `{text}` on a machine that has it and name the image in `stage:`.",
        )
    return [word.replace("{program}", program or "") for word in words]


def built(definition: Path, site: Site, kept: Path, say: Callable[[str], None]) -> Path:
    """Return the image of a `definition`, built now unless it was built before; kept in `kept`.

    Raises:
        InputError: the definition cannot be read, or it cannot be built.
    """
    try:
        content = definition.read_bytes()
    except OSError as error:
        raise InputError(
            f"The definition {definition} cannot be read: {error.strerror}.", "Check `stage:`."
        ) from error
    command = image_command(site)
    mark = hashlib.sha256("\0".join(command).encode() + b"\0" + content).hexdigest()[:16]
    image = kept / mark / f"{definition.stem}.sif"
    if image.exists():
        return image
    say(f"building {image.name} from {definition}")
    image.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = image.with_name(f".{secrets.token_hex(4)}.sif")
    words = [
        word.replace("{image}", str(aside)).replace("{definition}", str(definition))
        for word in command
    ]
    try:
        done = subprocess.run(
            words, cwd=definition.parent, capture_output=True, stdin=subprocess.DEVNULL
        )
        if done.returncode or not aside.exists():
            said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
            raise InputError(
                f"The image of {definition} could not be built: {' / '.join(said[-_WORDS:])}.",
                f"Run `{shlex.join(words)}` manually to see all of it.",
            )
        os.chmod(aside, 0o600)
        aside.replace(image)
    except OSError as error:
        raise InputError(
            f"The image of {definition} could not be built: {error.strerror}.",
            f"Check {words[0]} and the disk of {kept}.",
        ) from error
    finally:
        aside.unlink(missing_ok=True)
    return image
