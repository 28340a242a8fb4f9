"""A setting: a key of the job file or an argument of its script, and the value it gets. Pure."""

from typing import Any

from lumitui.app.job.script_args import with_argument
from lumitui.remote.errors import InputError


def set_in(data: dict[str, Any], key: str, value: object) -> None:
    """Set `key` in the job file's `data`: `time`, `env.NCCL_DEBUG` or the argument `--lr`.

    Raises:
        InputError: `key` is below a key that has none below it.
    """
    if key.startswith("-"):
        data["args"] = list(with_argument(tuple(data.get("args", ())), key, str(value)))
        return
    place = data
    *path, last = key.split(".", 1) if key.startswith("env.") else key.split(".")
    for part in path:
        below = place.setdefault(part, {})
        if not isinstance(below, dict):
            raise InputError(f"{part} has no keys below it.", f"Set {part}= itself.")
        place = below
    place[last] = value
