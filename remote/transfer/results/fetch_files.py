"""Fetches files of a run: lists and hashes them, sends one stream, and keeps correct files.

An invalid name, size or content from the site affects only that file: it is reported, and the other
files are fetched.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from lumitui.remote.site.run_folder import METRICS, attempt_log
from lumitui.remote.transfer.results.laptop_files import (
    FetchTargets,
    PartialFile,
    PartialFiles,
    PlaceFault,
    shown,
)
from lumitui.remote.transfer.results.site_files import (
    MOST_TROUBLES,
    Digests,
    NotFetched,
    digests_of,
    list_again,
    list_files,
    portions,
)
from lumitui.remote.transfer.results.transfer import WantedFile, transfer
from lumitui.remote.transport.transport import Transport


@dataclass(frozen=True)
class Fetched:
    """One fetched file."""

    name: str
    """Its path below the remote folder."""
    path: Path
    size: int
    """Bytes."""
    fresh: bool
    """Whether it was transferred now; False: an equal file existed already."""


@dataclass(frozen=True)
class RemoteFile:
    """One file below a run's folder."""

    name: str
    """Its path below the folder."""
    size: int
    """Bytes."""


@dataclass(frozen=True)
class FetchOutcome:
    """The result of a fetch."""

    files: tuple[Fetched, ...]
    left: tuple[NotFetched, ...] = ()
    """Files that changed or vanished, cannot be read, or cannot be written here."""
    links: tuple[str, ...] = ()
    """Links that were not followed: dangling, to folders, or out of the folder."""
    unmatched: tuple[str, ...] = ()
    """The patterns without a match."""
    troubles: tuple[str, ...] = ()
    """The site's own messages about unreadable files."""
    remaining: tuple[RemoteFile, ...] = ()
    """Results that no pattern requested, by name."""


def fetch(
    transport: Transport,
    folder: str,
    patterns: Sequence[str],
    target: Path,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> FetchOutcome:
    """Fetch the files below remote `folder` that match `patterns` to `target`.

    `patterns` are shell patterns (`checkpoints/*.pt`) relative to `folder`; a matching folder
    includes everything in it. Existing equal files are not transferred again, and partly fetched
    files resume. A file that grows meanwhile is fetched as it was when listed; any other file that
    changes or vanishes is skipped. `stop` ends the fetch between two pieces; complete files and
    parts stay.

    Raises:
        InputError: a pattern is absolute or leaves the folder, or too many files match.
        RefusedError: the site could not read the folder.
        AnswerUnusable: the site's answer does not match the request.
        LumiError: the local disk is full, or `target` cannot be created.
        LinkError, LinkLost: see `Transport`; complete files and parts stay.
    """
    listing = list_files(transport, folder, patterns, stop)
    work = _Fetch(transport, folder, target, stop)
    work.parts.sweep(listing.files)
    lost = work.round(listing.files, _is_appended_to)
    if lost and not stop():
        # Once more, each up to its current size, which suffices for growing files.
        again = list_again(transport, folder, lost, stop)
        still = work.round(again.files, lambda name: True)
        for name in () if stop() else lost:
            if name not in again.files:
                work.leave(name, "it does not exist or is unreadable")
            elif name in still:
                changed = name in work.digests.sums
                work.leave(name, "it changed meanwhile" if changed else work.digests.why(name))
        work.troubles += again.troubles
    if not stop():
        work.parts.sweep()
    return FetchOutcome(
        tuple(sorted(work.done, key=lambda item: item.name)),
        tuple(sorted((*listing.left.values(), *work.left), key=lambda item: item.name)),
        tuple(listing.links),
        tuple(listing.unmatched),
        tuple(dict.fromkeys((*listing.troubles, *work.troubles)))[:MOST_TROUBLES],
    )


class _Fetch:
    """One fetch: the received files, and the failed ones."""

    def __init__(
        self, transport: Transport, folder: str, target: Path, stop: Callable[[], bool]
    ) -> None:
        self.transport, self.folder, self.stop = transport, folder, stop
        self.places = FetchTargets(target)
        self.parts = PartialFiles(target)
        self.done: list[Fetched] = []
        self.left: list[NotFetched] = []
        self.troubles: list[str] = []
        self.digests = Digests()
        """The site's data on the files of the last round."""
        self._over: set[str] = set()

    def leave(self, name: str, reason: str) -> None:
        self._over.add(name)
        self.left.append(NotFetched(shown(name), reason))

    def round(self, sizes: Mapping[str, int], growing: Callable[[str], bool]) -> list[str]:
        """Fetch the files that fit on the disk; return those that did not match the list."""
        candidates = {name: size for name, size in sizes.items() if self._has_place(name, size)}
        digests = digests_of(self.transport, self.folder, candidates, growing, self.stop)
        self.troubles += digests.troubles
        self.digests = digests
        missing: dict[tuple[str, int], list[WantedFile]] = {}
        for name, digest in digests.sums.items():
            size = candidates[name]
            if self.places.holds(name, size, digest):
                self._add(name, size, fresh=False)
            else:
                file = WantedFile(name, size, digest, steady=not growing(name))
                missing.setdefault((digest, size), []).append(file)
        self._bring({same[0].name: same for same in self._fitting(missing.values())})
        return [name for name in candidates if name not in self._over]

    def _has_place(self, name: str, size: int) -> bool:
        """Return whether `name` can be written here; otherwise skip it before the site reads it."""
        try:
            self.places.check(name)
            free = self.places.free()
            if size > free + self.parts.size(name) and self.places.size(name) != size:
                raise PlaceFault(_too_large(size, free))
        except PlaceFault as fault:
            self.leave(name, str(fault))
            return False
        return True

    def _fitting(self, missing: Iterable[list[WantedFile]]) -> Iterator[list[WantedFile]]:
        """Yield the groups of equal files that fit on the disk; skip the others."""
        room = self.places.free()
        for same in missing:
            need = same[0].size * len(same) - self.parts.size(same[0].name)
            if need <= room:
                room -= max(0, need)
                yield same
                continue
            for item in same:
                self.leave(item.name, _too_large(item.size, max(0, room)))

    def _bring(self, groups: Mapping[str, list[WantedFile]]) -> None:
        """Fetch the first file of each group of equal files, and copy it to the other names."""
        for portion in portions(list(groups)):
            if self.stop():
                return
            files = [groups[name][0] for name in portion]
            for file in transfer(self.transport, self.folder, files, self._part, self.stop):
                if file.part is not None:
                    self._put(file.part, file)
                    for twin in groups[file.name][1:]:
                        self._copy(file, twin)
                elif file.fault:
                    self.leave(file.name, file.fault)

    def _part(self, name: str, begun: bool) -> PartialFile | None:
        return self.parts.open(name) if not begun or self.parts.size(name) else None

    def _put(self, part: PartialFile, file: WantedFile) -> None:
        try:
            self.places.put(part, file.name)
        except PlaceFault as fault:
            self.leave(file.name, str(fault))
        else:
            self._add(file.name, file.size, fresh=True)

    def _copy(self, file: WantedFile, twin: WantedFile) -> None:
        """Copy a fetched file to another name; if that fails, request the file again."""
        if not self.places.holds(file.name, file.size, file.digest):
            return
        try:
            part = self.places.copied(file.name, self.parts, twin.name)
        except PlaceFault as fault:
            self.leave(twin.name, str(fault))
            return
        if part.digest == twin.digest:
            self._put(part, twin)
        else:
            part.discard()

    def _add(self, name: str, size: int, *, fresh: bool) -> None:
        self._over.add(name)
        self.done.append(Fetched(name, self.places.target / name, size, fresh))


def _is_appended_to(name: str) -> bool:
    """Return whether a running job appends to the file, so that its start matches the list."""
    last = name.rpartition("/")[2]
    return last == METRICS or fnmatchcase(last, attempt_log("*"))


def _too_large(size: int, room: int) -> str:
    return f"it has {_amount(size)}, but this disk has room for {_amount(room)}"


def _amount(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
