"""The contents of an image, from its survey or its name. Pure."""

from collections.abc import Iterable

from lumitui.app.launch.draft.job_form import FieldChoice
from lumitui.remote.transfer.environments.image_listing import Image

_OTHER_NAMES = {"lightning": ("lightning", "pytorch-lightning")}
"""Packages with more than one name."""
_SHOWN = (("torch", "torch"), ("rocm", "ROCm"), ("cuda", "CUDA"), ("python", "Python"))
"""What distinguishes images."""


def image_version(image: Image, name: str) -> str | None:
    """Return the version of a package (or of `python`, `rocm`, `cuda`) in `image`.

    "" if the image lacks it; None if that is unknown.
    """
    contents, key = image.contents, name.lower().replace("_", "-")
    if contents is None or contents.why_not:
        return image.named.get(key)
    own = {"python": contents.python, "rocm": contents.rocm, "cuda": contents.cuda}
    if key in own:
        return own[key]
    versions = (contents.packages.get(one) for one in _OTHER_NAMES.get(key, (key,)))
    return next(filter(None, versions), "")


def images_with_package(images: Iterable[Image], name: str) -> tuple[list[Image], list[Image]]:
    """Return the images with a package, and those for which that is unknown; "": any image."""
    have: list[Image] = []
    unknown: list[Image] = []
    for image in images:
        if not name:
            have.append(image)
            continue
        version = image_version(image, name)
        if version:
            have.append(image)
        elif version is None:
            unknown.append(image)
    return have, unknown


def why_version_unknown(image: Image) -> str:
    """Return why the contents of an image are unknown; "" if they are known."""
    return "lumitui did not inspect it" if image.contents is None else image.contents.why_not


def choice_of(image: Image) -> FieldChoice:
    """Return the image as a value of the form, with a summary of its contents."""
    versions = ((name, image_version(image, key)) for key, name in _SHOWN)
    words = ", ".join(f"{name} {version}" for name, version in versions if version)
    return FieldChoice(image.path, words or image.generation)
