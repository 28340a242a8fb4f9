"""Slurm's own forms of text: records of `Key=value`, limits, numbers of reserved cores. Pure."""

import re
from collections.abc import Iterable, Mapping

from lumitui.remote.site import walltime
from lumitui.remote.site.answer_fields import count, lines
from lumitui.remote.site.core_sets import parse_cores

_RECORD = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=(\S*)")
_LONGEST = 200
"""Most characters of a name that is taken over."""
ENDLESS = frozenset({"UNLIMITED", "INFINITE", "NONE", "N/A", "(null)", "", "0"})
"""What Slurm prints where there is no limit."""


def records(text: str) -> list[dict[str, str]]:
    """Return the `Key=value` records of `scontrol … -o`, a line each."""
    return [dict(_RECORD.findall(line)) for line in lines(text) if "=" in line]


def settings(text: str) -> dict[str, str]:
    """Return what `scontrol show config` prints: a `Key = value` a line."""
    found = {}
    for line in lines(text):
        key, sign, value = line.partition("=")
        if sign and re.fullmatch(r"[\w/]+", key.strip()):
            found[key.strip()] = value.strip()
    return found


def seconds(text: str) -> int | None:
    """Return a time limit in seconds; None: Slurm names none, or it cannot be read."""
    if text in ENDLESS:
        return None
    try:
        return walltime.seconds_of(text) or None
    except ValueError:
        return None


def tres(text: str) -> dict[str, str]:
    """Return `cpu=8,gres/gpu:a100=4` as pairs in small letters."""
    pairs = (part.partition("=") for part in text.split(","))
    return {key.strip().lower(): value.strip() for key, sign, value in pairs if sign}


def reserved(listed: str, cores: int, threads: int) -> frozenset[int]:
    """Return the cores that `CPUSpecList` keeps from jobs; none where it is no list of CPUs.

    Slurm numbers the threads of a core in a row. Where the list does not have whole cores in that
    numbering, it is the kernel's: the first threads of all cores, then the second ones.
    """
    try:
        cpus = frozenset(parse_cores(listed))
    except ValueError:
        return frozenset()
    in_a_row = frozenset(cpu // threads for cpu in cpus)
    whole = all(core * threads + thread in cpus for core in in_a_row for thread in range(threads))
    return _existing(in_a_row if whole else (cpu for cpu in cpus if cpu < cores), cores)


def _existing(cores: Iterable[int], count: int) -> frozenset[int]:
    return frozenset(core for core in cores if core < count)


def gives_whole_nodes(partition: Mapping[str, str]) -> bool:
    """Return whether a job of a partition gets whole nodes, as scontrol shows the partition.

    Slurm 26.05 writes `Exclusive=NODE`, earlier ones `OverSubscribe=EXCLUSIVE`.
    """
    old = partition.get("OverSubscribe", "").startswith("EXCLUSIVE")
    return old or partition.get("Exclusive") == "NODE"


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a partition, an account or a folder."""
    return 0 < len(text) <= _LONGEST and text.isprintable()


def whole(text: str) -> int:
    """Return a number that Slurm prints; 0 where it is none."""
    return count(text) or 0
