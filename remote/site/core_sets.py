"""Sets of CPU cores: as ranges, and as the hexadecimal masks Slurm wants."""

import re
from collections.abc import Iterable

_MOST = 100_000
_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


def parse_cores(text: str) -> tuple[int, ...]:
    """Return the cores of a list of ranges: `1-3,9` is (1, 2, 3, 9); empty text is not a core.

    Raises:
        ValueError: `text` is no such list.
    """
    cores: list[int] = []
    for part in text.split(",") if text.strip() else ():
        match = _RANGE.fullmatch(part.strip())
        if not match:
            raise ValueError(f"{text!r} is not a list of cores like 1-7,9")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"{part.strip()!r} in {text!r} runs backwards")
        cores += range(first, last + 1)
        if len(cores) > _MOST:
            raise ValueError(f"{text[:40]!r} lists more than {_MOST} cores")
    return tuple(cores)


def format_cores(cores: Iterable[int]) -> str:
    """Return cores as the shortest list of ranges: {1, 2, 3, 9} is `1-3,9`."""
    ranges: list[list[int]] = []
    for core in sorted(set(cores)):
        if ranges and core == ranges[-1][1] + 1:
            ranges[-1][1] = core
        else:
            ranges.append([core, core])
    return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in ranges)


def mask(cores: Iterable[int], width: int) -> str:
    """Return Slurm's mask of `cores`: bit i is core i; `width` cores make the digits.

    Example: `mask(range(49, 56), 64)` is `0x00fe000000000000`, LUMI's first.
    """
    bits = sum(1 << core for core in set(cores))
    return f"0x{bits:0{-(-width // 4)}x}"
