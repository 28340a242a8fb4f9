"""The runs of one job file."""

from collections.abc import Sequence

from lumitui.app.launch.send.preview import Preview
from lumitui.remote.site.errors import InputError


def only(previews: Sequence[Preview]) -> Preview:
    """Return the preview of a job file that is one run.

    Raises:
        InputError: it has a grid of several.
    """
    if len(previews) > 1:
        raise InputError(
            f"The job file has a grid of {len(previews)} runs, and this is about one.",
            "Remove `grid:`, or use `lumitui submit`, which sends them all.",
            field="grid",
        )
    return previews[0]
