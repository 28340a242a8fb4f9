"""What the answers say of a job's paths: what is missing, closed, or on a full disk. Pure."""

from collections.abc import Iterator

from lumitui.app.knowledge.rule import Finding
from lumitui.app.survey.inquiry.job_paths import Place, Wanted
from lumitui.app.survey.inquiry.topics import finding
from lumitui.remote.survey.inquiry.answers import PathState
from lumitui.remote.survey.inquiry.ask_inquiry import Answers

ALMOST = 0.95
"""From this part on a quota is called almost used up: a checkpoint of 7 billion parameters has
some 80 GB, 5 % of a quota of 1.6 TB."""
ALMOST_DISK = 0.98
"""The same of a whole file system, which the job shares with all others there."""


def path_findings(wanted: Wanted, found: Answers) -> Iterator[Finding]:
    """Yield the paths of a job that are missing or closed."""
    states = {state.path: state for state in found.paths}
    for place in wanted.places:
        if state := states.get(place.path):
            yield from _path(place, state)


def _path(place: Place, state: PathState) -> Iterator[Finding]:
    there = state.kind not in ("none", "link")
    if place.role == "image":
        if not there:
            yield finding("cluster-image", f"The image {place.path} is not there{_link(state)}.",
                           "Name one that `lumitui site images SITE` lists.", place.at)  # fmt: skip
        elif not state.readable:
            yield finding("cluster-image", f"You may not read the image {place.path}.",
                           "Ask its owner, or name another one.", place.at)  # fmt: skip
    elif place.role == "bind" and not there:
        yield finding(
            "cluster-bind", f"{place.path} is bound into the container and is not there"
            f"{_link(state)}.", "Make it, or leave out the bind.", place.at)  # fmt: skip
    elif place.role in ("data", "config") and not there and not state.above_writable:
        # What is missing in a folder that the person may write to may be the job's own output.
        yield finding(
            "cluster-path", f"{place.path} is not there{_link(state)}; the nearest folder that is, "
            f"{state.above}, is not yours to write to.",
            "Check the path; `lumitui site data` puts data there.", place.at,
            "error" if place.role == "config" else None)  # fmt: skip
    elif place.role == "output" and (state.kind != "folder" or not state.writable):
        what = "is not there" if not there else "cannot be written to"
        yield finding("cluster-output", f"The log's folder {place.path} {what}.",
                       f"Run `mkdir -p {place.path}` there before sbatch." if not there
                       else "Name a folder of yours.", place.at)  # fmt: skip
    elif place.role == "work" and not state.above_writable:
        yield finding("cluster-output", f"{place.path} cannot be made: {state.above} is not yours "
                       "to write to.", "Check the account; its members alone may write there.",
                       place.at)  # fmt: skip


def _link(state: PathState) -> str:
    return ": it is a link that leads nowhere" if state.kind == "link" else ""


def quota_findings(wanted: Wanted, found: Answers) -> Iterator[Finding]:
    """Yield the quotas and file systems that are full where the job reads or writes."""
    covered: set[str] = set()
    for row in found.quotas:
        inside = [place for place in wanted.places if _beneath(place.path, row.folder)]
        covered |= {place.path for place in inside}
        writing = next((place for place in inside if place.role in ("work", "output")), None)
        if not inside:
            continue
        for part, what in ((row.full, "bytes"), (row.files_full, "files")):
            if part >= ALMOST:
                yield finding(
                    "cluster-quota",
                    f"{row.folder} holds {part:.0%} of the {what} that its quota allows"
                    + ("; nothing more can be written." if part >= 1 else "."),
                    "Remove what is not needed, or write the job's results to another area.",
                    (writing or inside[0]).at,
                    "error" if part >= 1 and writing else None,
                )
    yield from _disks(wanted, found, covered)


def _disks(wanted: Wanted, found: Answers, covered: set[str]) -> Iterator[Finding]:
    writing = {place.path: place for place in wanted.places if place.role in ("work", "output")}
    told: set[str] = set()
    for state in found.paths:
        if state.path not in writing or state.path in covered or state.space is None:
            continue
        for part, what in ((state.space.blocks, "space"), (state.space.files or 0.0, "files")):
            if part >= ALMOST_DISK and state.space.mount not in told:
                told.add(state.space.mount)
                yield finding(
                    "cluster-disk",
                    f"The file system {state.space.mount} is {part:.0%} full of {what}, and the "
                    "job writes there.",
                    "Write elsewhere, or remove what is not needed.",
                    writing[state.path].at,
                )


def _beneath(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")
