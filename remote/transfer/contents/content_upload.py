"""Sending one item: querying the missing parts, sending them, combining the tree.

One request suffices if the site has the item. Otherwise, a second request sends the small files and
creates the tree, with one more for each large file and each further 256 MiB of small files. A cut
link loses at most the current small file; a large file resumes at its last byte.
"""

import gzip
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import last_words, lines
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.site.shell_text import quote
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.transfer.contents import content_store
from lumitui.remote.transfer.contents.content_store import (
    Blob,
    Item,
    Store,
    blob_name,
    blobs_of,
    short_name,
)
from lumitui.remote.transfer.contents.pieces import (
    batch_shrinks,
    content_of,
    gathered,
    gzipped,
    shrinks,
    tar_of,
)
from lumitui.remote.transfer.contents.shipment_progress import Meter, Report
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Result, Transport

PATIENCE = 600.0
"""Maximum seconds for hashing and listing on the site, in addition to the transfer."""
_MISSING = re.compile(r"m ([0-9]{1,9}) ([0-9]{1,9})")
_PART = re.compile(r"p (([0-9a-f]{64}x?)-([0-9]{1,15})-[0-9a-f]{8}) ([0-9]{1,15})")


@dataclass(frozen=True)
class ContentPart:
    """A part of a large content that the site has."""

    name: str
    offset: int
    """Its offset in the whole content."""
    size: int


@dataclass(frozen=True)
class MissingContents:
    """The parts of an item that a site lacks."""

    blobs: Sequence[Blob]
    parts: dict[str, list[ContentPart]]
    """By blob name."""
    linked: bool = True
    """Whether the file system supports links to files in other folders."""


def ask(transport: Transport, store: Store, item: Item) -> MissingContents | None:
    """Return the parts of `item` that `store` lacks, or None. Creates the store if missing.

    Raises:
        RefusedError: the store cannot be created, or lacks the hard links that staged files need.
        AnswerUnusable: the site's answer is unusable.
    """
    script = content_store.opened(store)
    script += content_store.script(store.folder, content_store.ASK, **content_store.values(item))
    blobs = blobs_of(item)
    names = "".join(f"{short_name(blob)} {blob.entry.size}\n" for blob in blobs)
    result = transport.run(script, stdin=gzip.compress(names.encode(), 1), timeout=PATIENCE)
    check(result, item.name, store)
    if result.text.strip() == "no-links":
        if item.is_code:
            return MissingContents(blobs, {}, linked=False)
        raise RefusedError(
            f"The file system of {store.folder} has no hard links between folders, which staged "
            "files need.",
            "Set `work_root:` in the site's profile to a folder on another file system.",
        )
    return missing_in(result, blobs, store.folder)


def check(result: Result, name: str, store: Store) -> None:
    """Raise RefusedError if a script that stores `name` in `store` failed."""
    if result.code == 74 and b"not what was sent" in result.err and store.site:
        raise wrong(name, store.folder)
    if result.code:
        hint = "Check quota and permissions there; `lumitui site prune` removes old snapshots."
        if store.site:
            hint = (
                f"Check quota and permissions there; `lumitui site data {store.site} --prune` "
                "removes unused data. Then send again."
            )
        raise RefusedError(
            f"The site could not store {name} in {store.folder}: {reason(result)}.", hint
        )


def reason(result: Result) -> str:
    """Return the line of standard error with the reason, which tar's last line never has."""
    errors = result.err.decode("utf-8", "replace").strip().splitlines()
    reasons = [line for line in errors if "xiting with failure" not in line]
    full = [line for line in reasons if re.search("space|quota", line, re.IGNORECASE)]
    if not full and any("Wrote only" in line for line in reasons):
        full = ["no space left, or the quota is used up: tar wrote only part of a file"]
    return last_words((full or reasons[-1:] or [""])[0], default=f"exit status {result.code}")


def wrong(name: str, folder: str) -> RefusedError:
    """Return the error for contents whose hash on the site differs from the local one."""
    return RefusedError(
        f"{name} was corrupted on its way to {folder}.",
        "Send it again; if the error recurs, ask the site's support to check the disk.",
    )


def unusable(line: str, folder: str) -> AnswerUnusable:
    """Return the error for an unusable answer."""
    return AnswerUnusable(
        f"The site answered with {last_words(line)} instead of a list of its files in {folder}.",
        "Check what your shell startup files print on the site, and send again.",
    )


def missing_in(result: Result, blobs: Sequence[Blob], folder: str) -> MissingContents | None:
    """Return the missing parts of `blobs` from an answer; None if the site has the item."""
    *rows, last = list(lines(result.out)) or [""]
    if not rows and last == "stands":
        return None
    lacking: dict[Blob, None] = {}
    parts: dict[str, list[ContentPart]] = {}
    for line in rows:
        if match := _MISSING.fullmatch(line):
            start, end = int(match[1]), int(match[2])
            if not 0 < start <= end <= len(blobs):
                raise unusable(line, folder)
            lacking |= dict.fromkeys(blobs[start - 1 : end])
        elif match := _PART.fullmatch(line):
            part = ContentPart(match[1], int(match[3]), int(match[4]))
            parts.setdefault(match[2], []).append(part)
        else:
            raise unusable(line, folder)
    if last != "asked":
        raise unusable(last, folder)
    return MissingContents(list(lacking), parts)


def covered(parts: Sequence[ContentPart], size: int) -> tuple[list[tuple[str, int]], int]:
    """Return the parts that cover the content from byte 0 without a gap, and their end.

    Each part is returned with its number of bytes to use: the process of a cut link may have
    continued to write after another send began.
    """
    chain: list[tuple[str, int]] = []
    offset = 0
    while offset < size:
        fitting = [part for part in parts if part.offset == offset and part.size > 0]
        if not fitting:
            break
        best = max(fitting, key=lambda part: part.size)
        later = [part.offset for part in parts if offset < part.offset <= offset + best.size]
        reach = {at: _reach(parts, at) for at in later} | {offset + best.size: offset + best.size}
        end = min(max(reach, key=lambda at: reach[at]), size)
        chain.append((best.name, end - offset))
        offset = end
    return chain, offset


def _reach(parts: Sequence[ContentPart], offset: int) -> int:
    """Return the end of the longest part that begins at `offset`."""
    return max(part.offset + part.size for part in parts if part.offset == offset)


_SLOWEST = 100_000  # bytes per second; a slower link runs into the timeout
_TRIES = 3  # of a large file from its start: another send may take its part while it arrives


@dataclass(frozen=True)
class Shipped:
    """An item on the site, and what its transfer took."""

    path: str
    """Path of the file or folder on the site."""
    id: str
    files_sent: int
    bytes_sent: int
    """Bytes of the sent files, before compression."""
    requests: int


@purpose("stage")
def stage(
    transport: Transport, folder: str, item: Item, *, site: str, group: str = "", report: Report
) -> Shipped:
    """Put `item` into the store at `folder`, sending only missing parts; see `run`.

    `site` is its name for messages; `group` is the group of the files, "": the user's default.
    """
    return ContentUpload(transport, Store(folder, site, group), item, report).run()


class ContentUpload:
    """The upload of one item."""

    def __init__(
        self,
        transport: Transport,
        store: Store,
        item: Item,
        report: Report = lambda progress: None,
        checks: str = "",
    ) -> None:
        """Send nothing yet; `checks` is sh that verifies the tree's hashes before it is renamed."""
        self.transport, self.store, self.item, self.checks = transport, store, item, checks
        self.meter = Meter(item.name, report)
        self.blobs = blobs_of(item)
        self.requests = self.files = self.bytes = 0

    def run(self, base: Manifest | None = None) -> Shipped:
        """Put the item into the store, sending only missing parts.

        With `base`, a tree sent before, there is no query: only the differences are sent, or
        everything if that tree is gone.

        Raises:
            InputError: a file changed since it was read.
            RefusedError: the site could not store the item (disk full, quota, no permission, no
                group).
            LinkError, LinkLost: see `Transport.run`. A repeated call does not send again what
                arrived.
        """
        if base is not None and base.id != self.item.manifest.id:
            had = {blob_name(entry) for entry in base.files}
            differing = [blob for blob in self.blobs if blob.name not in had]
            if not self._send_small(differing, base=base):
                self._send_missing()
        else:
            self._send_missing()
        single = f"/{self.item.single}" if self.item.single else ""
        path = f"{self.store.folder}/{self.item.manifest.id}{single}"
        return Shipped(path, self.item.manifest.id, self.files, self.bytes, self.requests)

    def _send_missing(self) -> None:
        self.meter.begin("asking")
        self.requests += 1
        missing = ask(self.transport, self.store, self.item)
        if missing is None:
            return
        if not missing.linked:
            self._send_small([], linked=False)
            return
        total = sum(blob.entry.size for blob in self.blobs)
        rest = sum(blob.entry.size for blob in missing.blobs)
        self.meter.begin("sending", total, total - rest)
        small: list[Blob] = []
        for blob in missing.blobs:
            if blob.entry.size < content_store.LARGE:
                small.append(blob)
            else:
                self._send_large(blob, missing.parts.get(blob.name, []))
        *early, last = _batches(small)
        for batch in early:
            self._send_small(batch, places=False)
        self._send_small(last)

    # -- large files, one request each

    def _send_large(self, blob: Blob, parts: Sequence[ContentPart]) -> None:
        """Send the missing rest of a large file, or if its hash is wrong, the whole file."""
        chain, offset = covered(parts, blob.entry.size)
        if self._send_rest(blob, chain, offset):
            return
        # The existing part is gone: it belonged to another file, or another send took it.
        for _ in range(_TRIES):
            self.meter.add(-blob.entry.size)
            if self._send_rest(blob, [], 0):
                return
        raise wrong(self.item.name, self.store.folder)

    def _send_rest(self, blob: Blob, chain: Sequence[tuple[str, int]], offset: int) -> bool:
        """Send the bytes from `offset` on; return whether the file's hash is right."""
        entry = blob.entry
        if not self.item.unchanged(entry.path):
            raise self.item.changed(entry.path)
        self.meter.add(offset)
        own, rest = f"{blob.name}-{offset}-{secrets.token_hex(4)}", entry.size - offset
        counted = [*chain, (own, rest)] if rest else chain
        squeezed = shrinks(self.item.sources[entry.path], entry.size)
        text = content_store.script(
            self.store.folder,
            content_store.PARTS,
            content_store.PART if rest else "",
            content_store.JOIN,
            own=own,
            unpack="gzip -dc" if squeezed else "cat",
            length=rest,
            place=f"../blobs/{blob.name}",
            size=entry.size,
            chain=" ".join(name for name, _ in counted),
            counted=" ".join(f"{name} {size}" for name, size in counted),
            sha=entry.sha256,
            mode="0500" if entry.executable else "0400",
        )
        pieces = self.meter.pass_on(content_of(self.item, entry, offset))
        result = self._request(text, gzipped(pieces) if squeezed else pieces, rest / _SLOWEST)
        if result.code == 74 and b"not what was sent" in result.err:
            if not self.item.unchanged(entry.path):
                raise self.item.changed(entry.path)
            return False
        if result.code == 75 and b"another send took" in result.err:
            return False
        self._answer(result, "made")
        self.files, self.bytes = self.files + 1, self.bytes + rest
        return True

    # -- small files, many in a request

    def _send_small(
        self,
        batch: Sequence[Blob],
        *,
        places: bool = True,
        base: Manifest | None = None,
        linked: bool = True,
    ) -> bool:
        """Send a batch of small files; with `places`, also create the item's tree.

        Without `linked`, the tree contains copies instead of links. Returns False if the item is
        based on `base` and that tree is gone.
        """
        item, random = self.item, secrets.token_hex(4)
        sent = batch if linked else self.blobs
        size = sum(blob.entry.size for blob in sent)
        squeezed = batch_shrinks(item, sent)
        manifest = item.manifest
        # Contents are hashed on arrival, except in a tree without links; and not every tool
        # supports a backslash in a list of hashes.
        hashed = not linked or any("\\" in path for path in item.sources)
        text = content_store.script(
            self.store.folder,
            content_store.BASED if base else "",
            content_store.BATCHED,
            self.checks if hashed else "",
            content_store.PLACE if places else 'discard "$w"; echo made\n',
            random=random,
            unpack="gzip -dc" if squeezed else "cat",
            # Partial code is not kept: the next send is small, or starts over.
            leave='discard "$w"' if item.is_code else f'mv "$w" .left-{random} 2>/dev/null',
            count=len(batch),
            facts=quote(f"{len(manifest.entries)} {manifest.size} {_label(item)}"),
            **content_store.values(item, base.id if base else ""),
        )
        pieces = tar_of(
            item, f".in-{random}", batch, self.meter, places=places, base=base, linked=linked
        )
        stream = gzipped(pieces) if squeezed else gathered(pieces)
        limit = (size + 1024 * len(manifest.entries)) / _SLOWEST
        result = self._request(text, stream, limit)
        words = ("made", "stands", "base-gone") if base else ("made",)
        word = self._answer(result, *words)
        if word == "made":
            self.files, self.bytes = self.files + len(sent), self.bytes + size
        return word != "base-gone"

    # -- requests

    def _request(self, text: str, stream: Iterator[bytes], seconds: float) -> Result:
        self.requests += 1
        text = content_store.opened(self.store) + text
        return self.transport.run(text, stdin=stream, timeout=PATIENCE + seconds)

    def _answer(self, result: Result, *words: str) -> str:
        check(result, self.item.name, self.store)
        if result.text.strip() not in words:
            raise unusable(result.text, self.store.folder)
        return result.text.strip()


def _batches(blobs: Sequence[Blob]) -> list[list[Blob]]:
    batches: list[list[Blob]] = [[]]
    size = 0
    for blob in blobs:
        if size + blob.entry.size > content_store.BATCH and batches[-1]:
            batches.append([])
            size = 0
        batches[-1].append(blob)
        size += blob.entry.size
    return batches


def _label(item: Item) -> str:
    """Return the item's name for lists: that in the job file."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", item.name)
