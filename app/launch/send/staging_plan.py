"""Stages a send: uploads the job file's `stage:` to the site before the run.

The upload uses the site's host for files, if it has one, over a connection that is closed
afterwards. If the connection is lost, the upload resumes a few times, as long as bytes arrive.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.app.explain.run_phrases import progress_line
from lumitui.app.explain.words import count, size
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.send.lock import sender_lock
from lumitui.remote.connect import Connection
from lumitui.remote.site.errors import (
    AnswerNeeded,
    AnswerUnusable,
    InputError,
    LinkError,
    LinkLost,
    unusable_path,
)
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import STAGE
from lumitui.remote.site.source_position import at_key
from lumitui.remote.source.hash_cache import Hashes
from lumitui.remote.transfer.contents.shipment_progress import Meter

if TYPE_CHECKING:
    from lumitui.remote.transfer.contents.content_store import Item
    from lumitui.remote.transfer.contents.content_upload import Shipped
    from lumitui.remote.transfer.contents.staged_files import StagedFiles
    from lumitui.remote.transport.transport import Transport

_PAUSES = (1.0, 3.0, 10.0)
"""Seconds before each retry after the connection was lost."""
_HELD = 60.0
_DEFINITION = ".def"
"""The suffix of a container's definition."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Staging:
    """The items of a send to stage, before they are read."""

    sources: Mapping[str, Path]
    """The paths on the laptop, by name."""
    allowed: tuple[str, ...]
    """Files to send even if they look like secrets."""
    follow: tuple[str, ...]
    """Links out of staged folders to follow."""
    site: Site
    folder: str
    """The store on the site."""
    group: str
    kept: Path
    """The folder on the laptop with the hashes of files."""


def staging_of(
    spec: JobSpec, project: Path, site: Site, connection: Connection, kept: Path
) -> Staging:
    """Return the items to stage for `spec` at `site`; `kept` is the folder with file hashes."""
    sources = {name: place_of(one.path, project) for name, one in spec.stage.items()}
    folder = f"{connection.work_root(site, spec.account)}/{STAGE}"
    group = site.file_group and site.file_group.format(account=spec.account, user=connection.user())
    return Staging(sources, spec.ship_secrets, spec.follow_links, site, folder, group, kept)


def place_of(path: str, project: Path) -> Path:
    """Return the absolute path of a job file's `path`."""
    return Path(os.path.normpath(project / os.path.expanduser(path)))


def left_out(spec: JobSpec, project: Path) -> frozenset[str]:
    """Return the project's paths that are staged, which the code therefore omits.

    The code keeps paths that contain the script, the working folder, DeepSpeed's configuration or
    wheels.
    """
    config = spec.deepspeed.config if spec.deepspeed else None
    wheels = spec.venv.wheels if spec.venv and spec.venv.wheels_in_project else None
    paths = (spec.script, spec.workdir, config, wheels)
    needed = [os.path.normpath(path) for path in paths if path]
    omitted = set()
    for one in spec.stage.values():
        place = place_of(one.path, project)
        path = os.path.relpath(place, project)
        holds = any(f"{name}/".startswith(f"{path}/") for name in needed)
        if path.split("/")[0] not in (".", "..") and not holds:
            omitted.add(path)
    return frozenset(omitted)


def findings_of(spec: JobSpec, project: Path, site: Site) -> Iterator[Finding]:
    """Yield a preview's findings on the items to stage; this reads only file names."""
    if not spec.stage:
        return
    from lumitui.remote.transfer.contents.staged_files import find

    for name, one in spec.stage.items():
        place = place_of(one.path, project)
        key = f"stage.{name}"
        if place.suffix == _DEFINITION and os.path.isfile(place):
            message = f"stage: {name} is {place}, an image's definition, not an image."
            do = f"Run `apptainer build {place.stem}.sif {place.name}`, and stage the image."
            yield _error(message, do, "the files here", key)
            continue
        try:
            place.stat()
        except OSError as error:
            refused = None if error.errno == errno.ENOENT else unusable_path(error)
            message = f"stage: {name} is {place}, which does not exist."
            do = "Correct the path, or download the data first."
            if refused:
                message, do = f"stage: {name}: {refused.message}", refused.hint
            yield _error(message, do, "the files here", key)
            continue
        try:
            staged = find(name, place, spec.ship_secrets, spec.follow_links, enough=_COUNTED)
            if staged.root == Path(os.path.realpath(project)):
                raise InputError(
                    f"stage: {name} is the whole project, which lumitui sends as code.",
                    "Stage only the file or folder with the data.",
                )
        except InputError as error:
            yield _error(error.message, error.hint, "the files here", key)
            continue
        yield from _private(staged, place, project, site, key)
        files, total = count(len(staged.files), "file"), size(staged.size)
        if len(staged.files) + len(staged.links) >= _COUNTED:
            files, total = f"more than {_COUNTED:,} files", f"more than {total}"
        apart = os.path.relpath(place, project) in left_out(spec, project)
        yield Finding(
            "stage-size",
            "note",
            f"{name} is staged: {files}, {total}, from {_origin(staged, place)}; lumitui uploads "
            "only what the site lacks.",
            f"The job finds it at $STAGE_{name}, read-only"
            + ("; the code is sent without it." if apart else "."),
            "the files here",
            at=at_key(key),
        )


def _private(
    staged: StagedFiles, place: Path, project: Path, site: Site, field: str
) -> Iterator[Finding]:
    """Yield a finding on staged files that only the user can read here.

    Files in the project and in the home are usually private, so they do not count.
    """
    homes = (Path.home(), project)
    if not staged.private or any(staged.root.is_relative_to(home.resolve()) for home in homes):
        return
    first, more = staged.private[0], len(staged.private) - 1
    what = str(place) if first == "." or staged.single else f"{place}/{first}"
    also = f" and {count(more, 'more file')}" if more else ""
    word = staged.root.name if first == "." or more else first
    readers = ", where the project's group can read it" if site.file_group else ""
    yield Finding(
        "stage-private",
        "warning",
        f"{staged.name} is staged to {site.name}{readers}, but on this machine only you can read "
        f"{what}{also}.",
        f"If it must stay private, correct `stage:`; otherwise add `ship_secrets: [{word}]`.",
        "the files here",
        at=at_key(field),
    )


def heeded(spec: JobSpec, project: Path) -> frozenset[str]:
    """Return the patterns of `ship_secrets:` that match staged files."""
    if not spec.stage:
        return frozenset()
    from lumitui.remote.transfer.contents.staged_files import find

    words: set[str] = set()
    for name, one in spec.stage.items():
        try:
            place = place_of(one.path, project)
            words |= find(name, place, spec.ship_secrets, spec.follow_links).allow.heeded
        except InputError:  # `findings_of` reports it
            return frozenset(spec.ship_secrets)
    return frozenset(words)


def _error(message: str, do: str, source: str, field: str) -> Finding:
    return Finding("stage", "error", message, do, source, at=at_key(field), final=True)


_MOST_LINKS = 5


def _origin(staged: StagedFiles, place: Path) -> str:
    """Return the origin of a staged item, with the links that are followed."""
    taken = staged.follow.taken
    if staged.single or not taken:
        return f"{place} (a link to {staged.root})" if os.path.islink(place) else str(place)
    links = [f"{path} to {real}" for path, real in list(taken.items())[:_MOST_LINKS]]
    more = len(taken) - len(links)
    also = f" and {count(more, 'more file')}" if more else ""
    return f"{place}, with links to files outside it: {', '.join(links)}{also}"


_COUNTED = 20_000  # maximum number of files that a preview counts, since it runs at each key press


def ship(staging: Staging | str | None, connection: Connection, say: Say) -> dict[str, str]:
    """Upload all items; return their paths on the site, keyed by name.

    `staging` is the folder of a run that has them already, or None if there is nothing to stage.

    Raises:
        InputError: a file cannot be read, or changed meanwhile.
        RefusedError: the site could not store it.
        LinkError, LinkLost: the connection was lost repeatedly; the next send resumes.
    """
    if staging is None or isinstance(staging, str):
        return {}
    items = [_read(name, path, staging, say) for name, path in staging.sources.items()]
    with sender_lock(staging.kept, f"stage-{staging.site.name}") as free:
        if free:
            return _send(items, staging, connection, say)
    say("staging: waiting for another upload to this site")
    with sender_lock(staging.kept, f"stage-{staging.site.name}", wait=True):
        return _send(items, staging, connection, say)


def _send(items: list[Item], staging: Staging, connection: Connection, say: Say) -> dict[str, str]:
    places: dict[str, str] = {}
    with connection.files() as transport:
        for item in items:
            done = _patiently(item, transport, staging, say)
            places[item.name] = done.path
            sent = size(done.bytes_sent) if done.requests > 1 else "the site already had it"
            say(f"staged {item.name}: {count(len(item.manifest.entries), 'file')}, {sent}")
    return places


def _patiently(item: Item, transport: Transport, staging: Staging, say: Say) -> Shipped:
    """Stage an item; if the connection is lost, retry a few times.

    A host that was never reached does not count as lost. A connection that lasted a minute renews
    the retries.
    """
    from lumitui.remote.transfer.contents.content_upload import stage

    pauses, lost = list(_PAUSES), False
    while True:
        began = time.monotonic()
        try:
            return stage(
                transport,
                staging.folder,
                item,
                site=staging.site.name,
                group=staging.group,
                report=lambda progress: say(progress_line(progress)),
            )
        except (AnswerNeeded, AnswerUnusable):
            raise
        except LinkError as error:
            lost = lost or isinstance(error, LinkLost)
            if time.monotonic() - began > _HELD:
                pauses = list(_PAUSES)
            if not lost or not pauses:
                raise
            say(f"staging {item.name}: {error.message} Retrying.")
            time.sleep(pauses.pop(0))


def _read(name: str, path: Path, staging: Staging, say: Say) -> Item:
    from lumitui.remote.transfer.contents.staged_files import find, read

    staged = find(name, path, staging.allowed, staging.follow)
    key = hashlib.sha256(b"stage:" + os.fsencode(staged.root)).hexdigest()[:24]
    meter = Meter(name, lambda progress: say(progress_line(progress)))
    meter.begin("reading", staged.size)
    return read(staged, Hashes(staging.kept / f"{key}.json", staged.root), meter.add)
