"""The keys of the job file that correspond to options of sbatch."""

import re
from collections.abc import Sequence

KEY_OF_OPTION = {
    "account": "account", "partition": "partition", "qos": "partition", "nodes": "nodes",
    "gpus": "gpus_per_node", "gpus-per-node": "gpus_per_node", "gpus-per-socket": "gpus_per_node",
    "gres": "gpus_per_node", "ntasks": "gpus_per_node", "ntasks-per-node": "gpus_per_node",
    "tasks-per-node": "gpus_per_node", "cpus-per-task": "cpus_per_task", "mem": "memory",
    "mem-per-cpu": "memory", "mem-per-gpu": "memory", "local-disk": "local_disk",
    "exclusive": "exclusive", "time": "time", "signal": "signal", "requeue": "chain",
    "job-name": "name",
}  # fmt: skip
"""Keys by long option; `local-disk` comes from a cure, since its option depends on the site."""
_OPTION = re.compile(r"(?:^|\s)(?:--dep[a-z]*(?:=|\s+)|-d\s*)\S+")
"""Matches a dependency in an entry of `sbatch:`, which may have several options."""


def without_dependency(options: Sequence[str]) -> tuple[str, ...]:
    """Return sbatch's options without any dependency on jobs by number."""
    left = (_OPTION.sub("", option).strip() for option in options)
    return tuple(option for option in left if option)
