"""GPUs by the names that sites give them in Slurm: a table of what their makers sell."""

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class GpuType:
    """A GPU that is sold."""

    name: str
    maker: Literal["nvidia", "amd", "intel"]
    memories: tuple[int, ...]
    """GiB with which it is made, the least first."""

    @property
    def memory_gib(self) -> int:
        """The least memory that it has."""
        return self.memories[0]

    @property
    def several(self) -> bool:
        """Whether it is made with more than one size."""
        return len(self.memories) > 1

    @property
    def sizes(self) -> str:
        """The sizes as words: `40 or 80 GiB`."""
        return f"{' or '.join(map(str, self.memories))} GiB"


# The first name that is in Slurm's type counts: `gh200` before `h200`, `mi250x` as `mi250`.
# sources: the makers' data sheets; of an MI250 Slurm counts the two dies.
_TYPES = (
    GpuType("GB200", "nvidia", (186,)),
    GpuType("GH200", "nvidia", (96, 144)),
    GpuType("B200", "nvidia", (180,)),
    GpuType("H200", "nvidia", (141,)),
    GpuType("H100", "nvidia", (64, 80, 94)),
    GpuType("A100", "nvidia", (40, 64, 80)),
    GpuType("V100", "nvidia", (16, 32)),
    GpuType("P100", "nvidia", (12, 16)),
    GpuType("K80", "nvidia", (12,)),
    GpuType("L40", "nvidia", (48,)),
    GpuType("A40", "nvidia", (48,)),
    GpuType("A30", "nvidia", (24,)),
    GpuType("L4", "nvidia", (24,)),
    GpuType("T4", "nvidia", (16,)),
    GpuType("MI355", "amd", (288,)),
    GpuType("MI325", "amd", (256,)),
    GpuType("MI300A", "amd", (128,)),
    GpuType("MI300", "amd", (192,)),
    GpuType("MI250", "amd", (64,)),
    GpuType("MI210", "amd", (64,)),
    GpuType("MI100", "amd", (32,)),
)


def gpu_type(kind: str) -> GpuType | None:
    """Return the GPU that Slurm's type means; None: none that is known."""
    words = kind.lower()
    return next(
        (one for one in _TYPES if re.search(rf"(?<![a-z0-9]){one.name.lower()}", words)), None
    )
