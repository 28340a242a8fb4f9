"""The GPUs in what Slurm calls the generic resources of a node. Pure."""

import re
from dataclasses import dataclass

_GPUS = re.compile(r"gpu(?::(?P<kind>[A-Za-z][\w.+-]*))?(?::no_consume)?:(?P<number>\d{1,4})$")
# `1g.5gb`, `a100_1g.5gb`, `nvidia_a100_3g.20gb`: a part of a GPU (MIG)
_SLICE = re.compile(r"(^|[_.-])\d+g\.\d+gb", re.IGNORECASE)


@dataclass(frozen=True)
class Gpus:
    """Some GPUs of one type in a node."""

    kind: str
    """Slurm's type; "": it has none."""
    number: int

    @property
    def sliced(self) -> bool:
        """Whether each is a part of a GPU (MIG)."""
        return bool(_SLICE.search(self.kind))


def gpus_of(text: str) -> tuple[Gpus, ...]:
    """Return the GPUs of `gpu:a100:4(S:0-1),nvme:3600`, a row for each type; (): there are none."""
    found: dict[str, int] = {}
    # What is in brackets lists sockets or indexes, with commas of its own.
    for part in re.sub(r"\([^)]*\)?", "", text).split(","):
        if match := _GPUS.match(part.strip().replace(":no_consume", "")):
            if int(match["number"]):
                kind = match["kind"] or ""
                found[kind] = found.get(kind, 0) + int(match["number"])
        elif part.strip() == "gpu":
            found[""] = found.get("", 0) + 1
    return tuple(Gpus(kind, number) for kind, number in found.items())
