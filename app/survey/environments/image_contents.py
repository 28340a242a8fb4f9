"""What is known of an image, from its own answer or else from its name. Pure."""

from collections.abc import Iterable

from lumitui.app.launch.draft.job_form import FieldChoice
from lumitui.remote.transfer.environments.image_listing import Image

_OTHER_NAMES = {"lightning": ("lightning", "pytorch-lightning")}
"""Packages that are called by more than one name."""
_SHOWN = (("torch", "torch"), ("rocm", "ROCm"), ("cuda", "CUDA"), ("python", "Python"))
"""What tells images apart at a glance."""


def image_version(image: Image, name: str) -> str | None:
    """Return the version of a package (or of `python`, `rocm`, `cuda`) in `image`.

    "": it has none. None: that is not known.
    """
    contents, key = image.contents, name.lower().replace("_", "-")
    if contents is None or contents.why_not:
        return image.named.get(key)
    own = {"python": contents.python, "rocm": contents.rocm, "cuda": contents.cuda}
    if key in own:
        return own[key]
    return next(
        (
            contents.packages[one]
            for one in _OTHER_NAMES.get(key, (key,))
            if one in contents.packages
        ),
        "",
    )


def images_with_package(images: Iterable[Image], name: str) -> tuple[list[Image], list[Image]]:
    """Return the images that have a package, and those of which nobody knows; "": any image."""
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
    """Return why it is not known what an image holds; "": it is known."""
    if image.contents is None:
        return "it was not asked"
    return image.contents.why_not


def choice_of(image: Image) -> FieldChoice:
    """Return the image as a value of the form, with what it holds in a few words."""
    versions = ((name, image_version(image, key)) for key, name in _SHOWN)
    words = ", ".join(f"{name} {version}" for name, version in versions if version)
    return FieldChoice(image.path, words or image.generation)
