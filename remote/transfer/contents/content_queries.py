"""Asking a site which contents of an item it lacks, and which parts of large ones it has."""

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import last_words, lines
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.transfer.contents import content_store
from lumitui.remote.transfer.contents.content_store import Blob, Item, Store, blobs_of, short_name
from lumitui.remote.transport.transport import Result, Transport

PATIENCE = 600.0
"""Seconds that a site may take to hash and to list, besides what the sending takes."""
_MISSING = re.compile(r"m ([0-9]{1,9}) ([0-9]{1,9})")
_PART = re.compile(r"p (([0-9a-f]{64}x?)-([0-9]{1,15})-[0-9a-f]{8}) ([0-9]{1,15})")


@dataclass(frozen=True)
class ContentPart:
    """A piece of a large content that the site has."""

    name: str
    offset: int
    """The byte of the whole at which it begins."""
    size: int


@dataclass(frozen=True)
class MissingContents:
    """What a site lacks of an item."""

    blobs: Sequence[Blob]
    parts: dict[str, list[ContentPart]]
    """By the name of the blob that they are of."""
    linked: bool = True
    """Whether the file system links a file into another folder."""


def ask(transport: Transport, store: Store, item: Item) -> MissingContents | None:
    """Return what `store` lacks of `item`; None: it has it. Makes the store.

    Raises:
        RefusedError: the store cannot be made, or staged files need hard links that it has not.
        AnswerUnusable: the site does not say what it has.
        LinkError, LinkLost: as `Transport.run`.
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
            "Set `work_root:` of the site's profile to a folder on another file system.",
        )
    return missing_in(result, blobs, store.folder)


def check(result: Result, name: str, store: Store) -> None:
    """Raise RefusedError when a script that stores `name` in `store` failed."""
    if result.code == 74 and b"not what was sent" in result.err and store.site:
        raise wrong(name, store.folder)
    if result.code:
        hint = "Check quota and permissions there; `lumitui site prune` removes old snapshots."
        if store.site:
            hint = (
                f"Check quota and permissions there; `lumitui site data {store.site} --prune` "
                "removes what no run uses. Then send again."
            )
        raise RefusedError(
            f"The site could not store {name} in {store.folder}: {reason(result)}.", hint
        )


def reason(result: Result) -> str:
    """Return the line of standard error that says why; tar's own last line never does."""
    errors = result.err.decode("utf-8", "replace").strip().splitlines()
    reasons = [line for line in errors if "xiting with failure" not in line]
    full = [line for line in reasons if re.search("space|quota", line, re.IGNORECASE)]
    if not full and any("Wrote only" in line for line in reasons):
        full = ["no space left, or the quota is used up: tar wrote only a part of a file"]
    return last_words((full or reasons[-1:] or [""])[0], default=f"exit status {result.code}")


def wrong(name: str, folder: str) -> RefusedError:
    """Return the error for contents whose hash on the site is another one than here."""
    return RefusedError(
        f"What arrived of {name} in {folder} is not what was sent.",
        "Send again; if it happens twice, ask the site's support to check the disk there.",
    )


def unusable(line: str, folder: str) -> AnswerUnusable:
    """Return the error for an answer that is none."""
    return AnswerUnusable(
        f"The site does not say what it has in {folder}; it says: {last_words(line)}.",
        "Check what your login files print there, and send again.",
    )


def missing_in(result: Result, blobs: Sequence[Blob], folder: str) -> MissingContents | None:
    """Return what an answer says is missing of `blobs`; None: the site has the item."""
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
    """Return the parts that follow on each other from byte 0, and where they end.

    Each part comes with the bytes of it that count: a process that a cut link left may have written
    on after another one began.
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
    """Return the last byte of the parts that begin at `offset`."""
    return max(part.offset + part.size for part in parts if part.offset == offset)
