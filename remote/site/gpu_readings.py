"""How a site's GPUs are read while a job runs: the command, what it prints, and what idle means."""

from typing import Annotated, Literal

from pydantic import Field

from lumitui.remote.site.facts import Facts


class GpuReadings(Facts):
    """The command that shows the GPUs of a node, as data for one step on all nodes of a job."""

    command: str
    """A command line without placeholders, run by sh on each node."""
    prints: Literal["rocm-smi", "nvidia-smi"]
    """`rocm-smi`: the JSON of `rocm-smi --json`. `nvidia-smi`: lines of `--format=csv,noheader,
    nounits` with index, power.draw, memory.used, memory.total, utilization.gpu."""
    idle_watts: Annotated[float, Field(gt=0, le=10_000)]
    """A GPU that draws less does nothing; of two dies on one board it is what both draw."""
