"""The contents of an image, from its name and the profile's pattern. Pure."""

import re

_MINOR = "_minor"


def versions_in(path: str, pattern: str | None) -> dict[str, str]:
    """Return the versions that `pattern` finds in an image's path, by package.

    For a package `torch`, the group `torch_minor` is the part after the first dot: `t210` is 2.10.
    """
    match = re.search(pattern, path) if pattern else None
    groups = {name: text for name, text in match.groupdict().items() if text} if match else {}
    return {
        name: ".".join(filter(None, (text, groups.get(f"{name}{_MINOR}"))))
        for name, text in groups.items()
        if not name.endswith(_MINOR)
    }
