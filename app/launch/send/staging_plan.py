"""Staging of a send: what the job file names on the laptop, put on the site before the run.

It travels over the site's host for files where it has one, over a connection that is closed
afterwards. A link that is lost is taken up again a few times, as long as bytes arrive.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.explain.phrases.transfer_words import progress_line
from lumitui.app.explain.words import count, size
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.send.lock import sender_lock
from lumitui.remote.connect import Connection
from lumitui.remote.site.errors import AnswerNeeded, AnswerUnusable, InputError, LinkError, LinkLost
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import STAGE
from lumitui.remote.site.source_position import at_key
from lumitui.remote.source.hash_cache import Hashes
from lumitui.remote.transfer.contents.content_store import Item
from lumitui.remote.transfer.contents.content_upload import Shipped, stage
from lumitui.remote.transfer.contents.shipment_progress import Meter
from lumitui.remote.transfer.staging.staged_contents import find, read
from lumitui.remote.transfer.staging.staged_files import StagedFiles
from lumitui.remote.transport.transport import Transport

_PAUSES = (1.0, 3.0, 10.0)
"""Seconds before each further try after the link was lost."""
_HELD = 60.0
_DEFINITION = ".def"
"""How the name of a container's definition ends."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Staging:
    """What a send stages, before a byte of it is read."""

    sources: Mapping[str, Path]
    """What each name stands for on the laptop."""
    allowed: tuple[str, ...]
    """Files that may be sent although they look like secrets."""
    follow: tuple[str, ...]
    """Links out of what is staged that are followed."""
    site: Site
    folder: str
    """The store on the site."""
    group: str
    kept: Path
    """The folder on the laptop that keeps the hashes of files."""


def staging_of(
    spec: JobSpec, project: Path, site: Site, connection: Connection, kept: Path
) -> Staging:
    """Return what a send of `spec` stages at `site`; `kept` keeps what it learns of the files."""
    sources = {name: place_of(one.path, project) for name, one in spec.stage.items()}
    folder = f"{connection.work_root(site, spec.account)}/{STAGE}"
    group = site.file_group and site.file_group.format(account=spec.account, user=connection.user())
    return Staging(sources, spec.ship_secrets, spec.follow_links, site, folder, group, kept)


def place_of(path: str, project: Path) -> Path:
    """Return the file or folder that a job file calls `path`."""
    return Path(os.path.normpath(project / os.path.expanduser(path)))


def left_out(spec: JobSpec, project: Path) -> frozenset[str]:
    """Return what is staged inside the project, from its root: the code is sent without it.

    Not what the job starts in or with.
    """
    config = spec.deepspeed.config if spec.deepspeed else None
    wheels = spec.venv.wheels if spec.venv and spec.venv.wheels_in_project else None
    paths = (spec.script, spec.workdir, config, wheels)
    needed = [os.path.normpath(path) for path in paths if path]
    found = set()
    for one in spec.stage.values():
        place = place_of(one.path, project)
        path = os.path.relpath(place, project)
        holds = any(f"{name}/".startswith(f"{path}/") for name in needed)
        if path.split("/")[0] not in (".", "..") and not holds:
            found.add(path)
    return frozenset(found)


def findings_of(spec: JobSpec, project: Path, site: Site) -> Iterator[Finding]:
    """Yield what a preview says of the things to stage; only names are read."""
    for name, one in spec.stage.items():
        place = place_of(one.path, project)
        key = f"stage.{name}"
        if place.suffix == _DEFINITION and place.is_file():
            message = f"stage: {name} is {place}, the definition of an image and not an image."
            do = f"Run `apptainer build {place.stem}.sif {place.name}`, and name the image."
            yield _error(message, do, "the files here", key)
            continue
        if not place.exists():
            message = f"stage: {name} is to be {place}, which is not there."
            do = "Correct the path, or download it first."
            yield _error(message, do, "the files here", key)
            continue
        try:
            found = find(name, place, spec.ship_secrets, spec.follow_links, enough=_COUNTED)
            if found.root == Path(os.path.realpath(project)):
                raise InputError(
                    f"stage: {name} is the whole project, which is sent as code.",
                    "Name the file or folder in it that holds the data.",
                )
        except InputError as error:
            yield _error(error.message, error.hint, "the files here", key)
            continue
        yield from _private(found, place, project, site, key)
        files, total = _weighed(found)
        apart = os.path.relpath(place, project) in left_out(spec, project)
        yield Finding(
            "stage-size",
            "note",
            f"{name} is staged: {files}, {total}, from {_origin(found, place)}; what the site has "
            "is not sent.",
            f"In the job it is $STAGE_{name}, read-only"
            + ("; the code is sent without it." if apart else "."),
            "the files here",
            at=at_key(key),
        )


def _private(
    found: StagedFiles, place: Path, project: Path, site: Site, field: str
) -> Iterator[Finding]:
    """Yield what there is to say of files that other people here may not read.

    In the project and in the home that is as usual.
    """
    homes = (Path.home(), project)
    if not found.private or any(found.root.is_relative_to(home.resolve()) for home in homes):
        return
    first, more = found.private[0], len(found.private) - 1
    what = str(place) if first == "." or found.single else f"{place}/{first}"
    also = f" and {count(more, 'more file')}" if more else ""
    word = found.root.name if first == "." or more else first
    readers = ", whose project group can read it there" if site.file_group else ""
    yield Finding(
        "stage-private",
        "warning",
        f"{found.name} is staged to {site.name}{readers}, and other people here may not read "
        f"{what}{also}.",
        f"Correct `stage:` if it must stay here; `ship_secrets: [{word}]` says that it may go.",
        "the files here",
        at=at_key(field),
    )


def heeded(spec: JobSpec, project: Path) -> frozenset[str]:
    """Return which patterns of `ship_secrets:` are about what is staged."""
    words: set[str] = set()
    for name, one in spec.stage.items():
        try:
            place = place_of(one.path, project)
            words |= find(name, place, spec.ship_secrets, spec.follow_links).allow.heeded
        except InputError:  # it has an error of its own
            return frozenset(spec.ship_secrets)
    return frozenset(words)


def _error(message: str, do: str, source: str, field: str) -> Finding:
    return Finding("stage", "error", message, do, source, at=at_key(field), final=True)


_MOST_LINKS = 5


def _origin(found: StagedFiles, place: Path) -> str:
    """Return where it comes from; links that are followed are named."""
    if found.single or not found.follow.taken:
        return f"{place} (a link to {found.root})" if os.path.islink(place) else str(place)
    named = [f"{path} to {real}" for path, real in list(found.follow.taken.items())[:_MOST_LINKS]]
    more = len(found.follow.taken) - len(named)
    also = f" and {count(more, 'more file')}" if more else ""
    return f"{place}, where links lead out: {', '.join(named)}{also}"


_COUNTED = 20_000  # files that a preview counts: it is made at each key


def _weighed(found: StagedFiles) -> tuple[str, str]:
    if len(found.files) + len(found.links) >= _COUNTED:
        return f"more than {_COUNTED:,} files", f"more than {size(found.size)}"
    return count(len(found.files), "file"), size(found.size)


def ship(staging: Staging | str | None, connection: Connection, say: Say) -> dict[str, str]:
    """Put everything on the site; return the path there of each name.

    `staging` is the folder of a run that has it already, or None, where there is nothing to send.

    Raises:
        InputError: a file cannot be read, or changed meanwhile.
        RefusedError: the site could not store it.
        LinkError, LinkLost: the link was lost again and again; the next send continues.
    """
    if staging is None or isinstance(staging, str):
        return {}
    items = [_read(name, path, staging, say) for name, path in staging.sources.items()]
    with sender_lock(staging.kept, f"stage-{staging.site.name}") as free:
        if free:
            return _send(items, staging, connection, say)
    say("staging: waiting for another send to this site")
    with sender_lock(staging.kept, f"stage-{staging.site.name}", wait=True):
        return _send(items, staging, connection, say)


def _send(items: list[Item], staging: Staging, connection: Connection, say: Say) -> dict[str, str]:
    places: dict[str, str] = {}
    with connection.files() as transport:
        for item in items:
            done = _patiently(item, transport, staging, say)
            places[item.name] = done.path
            sent = size(done.bytes_sent) if done.requests > 1 else "the site had it"
            say(f"staged {item.name}: {count(len(item.manifest.entries), 'file')}, {sent}")
    return places


def _patiently(item: Item, transport: Transport, staging: Staging, say: Say) -> Shipped:
    """Stage an item; when the link is lost, try again, a few times.

    A host that cannot be reached at all is not a lost link. One that held for a minute counts as
    new.
    """
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
            say(f"staging {item.name}: {error.message} Trying again.")
            time.sleep(pauses.pop(0))


def _read(name: str, path: Path, staging: Staging, say: Say) -> Item:
    found = find(name, path, staging.allowed, staging.follow)
    key = hashlib.sha256(b"stage:" + os.fsencode(found.root)).hexdigest()[:24]
    meter = Meter(name, lambda progress: say(progress_line(progress)))
    meter.begin("reading", found.size)
    return read(found, Hashes(staging.kept / f"{key}.json", found.root), meter.add)
