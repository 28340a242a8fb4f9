"""Checks that the code has no files in the places of a job file's links. Pure."""

import posixpath
from collections.abc import Iterator

from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.errors import InputError
from lumitui.remote.source.manifest import Manifest


def taken_links(spec: JobSpec, code: Manifest) -> Iterator[tuple[str, InputError]]:
    """Yield each link that `code` leaves no place for: its key in the job file, and the error."""
    links = {name: ("links", f"links: {name}") for name in spec.links}
    staged = [(name, one.link) for name, one in spec.stage.items() if one.link]
    kinds = {entry.path: "a link" if entry.target else "a file" for entry in code.entries}
    folders = {above for path in kinds for above in _above(path)}
    seen: dict[str, str] = {}
    for link, key, label in (
        *((link, *words) for link, words in links.items()),
        *((link, f"stage.{name}", f"stage: {name}: `link: {link}`") for name, link in staged),
    ):
        # `ln` follows a link of the code, where a relative path to a staged item would be wrong.
        closed = {path for path, kind in kinds.items() if kind == "a file" or key != "links"}
        if reason := _reason(posixpath.normpath(link), kinds, folders, closed, seen):
            yield key, InputError(f"{label} is not free: {reason}.", "Use another path.")
        seen[posixpath.normpath(link)] = label


def _reason(
    link: str,
    kinds: dict[str, str],
    folders: set[str],
    closed: set[str],
    seen: dict[str, str],
) -> str:
    """Return why `link` cannot be created; "" if it can."""
    if link == ".":
        return "it is the code itself"
    if link in kinds or link in folders:
        return f"{link} is {kinds.get(link, 'a folder')} of the code"
    for above in _above(link):
        if above in closed:
            return f"{above} is {kinds[above]} of the code, not a folder"
    for other, label in seen.items():
        if f"{link}/".startswith(f"{other}/") or other.startswith(f"{link}/"):
            return f"{label} uses the same path"
    return ""


def _above(path: str) -> list[str]:
    """Return the folders that contain `path`."""
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts))]
