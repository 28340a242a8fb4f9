"""Texts made worse: cut, doubled, swapped, filled with garbage, the same ones every time."""

import random
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import pytest

from tests.support.attacks.hostile_text import FRAGMENTS, UNPASSABLE

COUNTS = [1000, pytest.param(10_000, marks=pytest.mark.slow)]
many = pytest.mark.parametrize("count", COUNTS)
"""Marks a test that takes `count` spoilt texts: 1,000, and 10,000 where slow tests run."""

HANGING = 60
"""Seconds after which one example counts as a hang; the slowest takes a few hundredths."""
MORE_MEMORY = 200 << 20
"""Bytes that a whole round may add to the most this process ever took."""
NUMBERS = ["9" * 400, "9" * 5000, "-1", "0", "1e400", "NaN", "Infinity", "\u00b2", "\u0661", "1.5"]
NUMBERS += ["18446744073709551616", "00000000001", "", "4294967295", "99999999999999"]
GARBAGE = [text.encode() for text in (*FRAGMENTS, *UNPASSABLE, *NUMBERS)]
GARBAGE += [b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\0" * 40, b"[" * 3000, b'{"a":' * 3000]
GARBAGE += [b"\r\n", b"M end\n", b"M queue 0\n", b"M exit 0 1\n", b"x" * 70_000]
SEPARATORS = (b"\n", b"|", b" ", b",", b":", b"=", b'"')

Change = Callable[[random.Random, bytes], bytes]


def _cut(rng: random.Random, text: bytes) -> bytes:
    at = rng.randrange(len(text) + 1)
    return text[:at] if rng.random() < 0.7 else text[at:]


def _insert(rng: random.Random, text: bytes) -> bytes:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(GARBAGE) + text[at:]


def _flip(rng: random.Random, text: bytes) -> bytes:
    out = bytearray(text)
    for _ in range(rng.randrange(1, 6)):
        if out:
            out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def _fields(rng: random.Random, text: bytes) -> bytes:
    """Double, drop, swap or replace what stands between two separators."""
    sign = rng.choice(SEPARATORS)
    parts = text.split(sign)
    one, two = rng.randrange(len(parts)), rng.randrange(len(parts))
    match rng.randrange(5):
        case 0:
            parts.insert(one, parts[two])
        case 1:
            del parts[one]
        case 2:
            parts[one], parts[two] = parts[two], parts[one]
        case 3:
            parts[one] = rng.choice(GARBAGE)
        case _:
            parts[one] = rng.choice(NUMBERS).encode()
    return sign.join(parts)


def _twice(rng: random.Random, text: bytes) -> bytes:
    return text + text if len(text) < 100_000 else text


CHANGES: tuple[Change, ...] = (_cut, _insert, _flip, _fields, _fields, _fields, _twice)


def worse(seeds: Sequence[bytes], count: int, seed: int = 1) -> Iterator[bytes]:
    """Yield `count` texts made of `seeds` by one to four changes each."""
    rng = random.Random(seed)
    for _ in range(count):
        text = rng.choice(seeds)
        for _ in range(rng.randrange(1, 5)):
            text = rng.choice(CHANGES)(rng, text)
        yield text


def survive(texts: Iterator[bytes], take: Callable[[bytes], object]) -> None:
    """Give every text to `take`: it returns in time, and the memory stays bounded."""

    def hangs(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"an example did not end in {HANGING} s")

    before, text = _most_memory(), b""
    old = signal.signal(signal.SIGALRM, hangs)
    try:
        for text in texts:
            signal.alarm(HANGING)
            take(text)
    except Exception as error:
        shown = f"{text[:2000]!r} ({len(text)} bytes)"
        raise AssertionError(f"{type(error).__name__}: {error}\non {shown}") from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
    assert _most_memory() - before < MORE_MEMORY


def _most_memory() -> int:
    """Return the most bytes this process has ever had in memory."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
