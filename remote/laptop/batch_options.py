"""The #SBATCH requests of a batch script; invalid ones are refused in sbatch's words.

Standard library only, see `supervisor`.
"""

import re
import shlex
import signal
from dataclasses import dataclass

from lumitui.remote.site import walltime

MAX_TASKS = 512
"""Maximum number of processes: more are a mistake on one machine."""

_VALUED = """
account acctg-freq comment constraint cpu-freq cpus-per-gpu cpus-per-task distribution error
exclude export gpu-bind gpus gpus-per-node gpus-per-task gres hint input job-name licenses
mail-type mail-user mem mem-bind mem-per-cpu mem-per-gpu network nice nodelist nodes ntasks
ntasks-per-core ntasks-per-gpu ntasks-per-node open-mode output partition priority profile qos
reservation signal switches threads-per-core time time-min tmp wckey
"""
_FLAGS = """
contiguous exclusive get-user-env kill-on-invalid-dep no-kill no-requeue overcommit
oversubscribe quiet requeue spread-job verbose wait
"""
_LATER = ("array", "begin", "dependency", "hold", "deadline", "clusters")
_SHORT = {"A": "account", "C": "constraint", "G": "gpus", "H": "hold", "J": "job-name"}
_SHORT |= {"N": "nodes", "a": "array", "b": "begin", "c": "cpus-per-task", "d": "dependency"}
_SHORT |= {"e": "error", "i": "input", "m": "distribution", "n": "ntasks", "o": "output"}
_SHORT |= {"p": "partition", "q": "qos", "s": "oversubscribe", "t": "time", "w": "nodelist"}
_SHORT |= {"x": "exclude", "W": "wait", "Q": "quiet", "v": "verbose", "M": "clusters"}


class Refused(Exception):
    """The script requests something impossible; the text is sbatch's message."""


@dataclass(frozen=True)
class BatchRequest:
    """The requests of the #SBATCH lines."""

    nodes: int = 1
    tasks: int = 1
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    gpus_per_node: str = ""
    limit: int | None = None
    """Seconds; None: no limit."""
    signal: int = 0
    """Signal sent to the tasks `before` seconds before the limit; 0: none."""
    before: int = 60
    to_script: bool = False
    """Whether it is sent to the batch script instead (`B:`)."""
    account: str = ""
    partition: str = ""


def options_of(script: str) -> dict[str, str]:
    """Return the options of the #SBATCH lines above the first command; the last value counts.

    Raises:
        Refused: an option unknown to sbatch, or without a meaning here.
    """
    if not script.startswith("#!"):
        raise Refused(
            "This does not look like a batch script.  The first line must start with #! "
            "followed by the path to an interpreter."
        )
    if "\r\n" in script:
        raise Refused(
            "Batch script contains DOS line breaks (\\r\\n) "
            "instead of expected UNIX line breaks (\\n)."
        )
    words: list[str] = []
    for line in script.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith("#SBATCH"):
            try:
                words += shlex.split(line.removeprefix("#SBATCH"), comments=True)
            except ValueError as error:
                raise Refused(f"{line}: {error}") from error
    options: dict[str, str] = {}
    while words:
        word = words.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            name, value = _SHORT.get(word[1:2], word), word[2:].removeprefix("=")
            equals = value
        if name in _LATER:
            raise Refused(f"--{name} is not available here: jobs start immediately, one by one.")
        if (name not in _VALUED.split() and name not in _FLAGS) or not word.startswith("-"):
            raise Refused(f"unrecognized option '{word}'")
        if name in _VALUED.split() and not equals:
            if not words:
                raise Refused(f"option '{word}' requires an argument")
            value = words.pop(0)
        options[name] = value
    return options


def read_request(script: str) -> BatchRequest:
    """Return the requests of `script`.

    Raises:
        Refused: an invalid request; the message is sbatch's.
    """
    options = options_of(script)
    nodes = _count(options, "nodes") or 1
    per_node = _count(options, "ntasks-per-node")
    tasks = _count(options, "ntasks") or nodes * (per_node or 1)
    if tasks < nodes or (per_node and tasks > nodes * per_node):
        raise Refused("Batch job submission failed: Requested node configuration is not available")
    if tasks > MAX_TASKS:
        raise Refused("Batch job submission failed: More processors requested than permitted")
    number, before, to_script = _signal(options.get("signal"))
    return BatchRequest(
        nodes=nodes,
        tasks=tasks,
        tasks_per_node=per_node,
        cpus_per_task=_count(options, "cpus-per-task"),
        gpus_per_node=options.get("gpus-per-node", ""),
        limit=_seconds(options["time"]) if "time" in options else None,
        signal=number,
        before=before,
        to_script=to_script,
        account=options.get("account", ""),
        partition=options.get("partition", ""),
    )


def _count(options: dict[str, str], name: str) -> int | None:
    if (text := options.get(name)) is None:
        return None
    # For a range of nodes (2-4), the smallest number counts.
    first = text.partition("-")[0] if name == "nodes" else text
    if not re.fullmatch(r"[0-9]{1,6}", first):
        raise Refused(f'Invalid numeric value "{text}" for --{name}.')
    if int(first) < 1:
        raise Refused(f"Batch job submission failed: --{name}={text} is less than one")
    return int(first)


def _seconds(text: str) -> int | None:
    """Return the seconds of a time limit; None for no limit."""
    if text.upper() in ("INFINITE", "UNLIMITED", "-1"):
        return None
    try:
        return walltime.seconds_of(text) or None
    except ValueError as error:
        raise Refused("Invalid --time specification") from error


def _signal(text: str | None) -> tuple[int, int, bool]:
    match = re.fullmatch(r"(?:([RB]+):)?([A-Za-z0-9]+)(?:@([0-9]{1,5}))?", text or "0")
    if not match:
        raise Refused("Invalid --signal specification")
    name = match[2].upper()
    number = (
        int(name) if name.isdigit() else getattr(signal, f"SIG{name.removeprefix('SIG')}", None)
    )
    if not isinstance(number, int) or not 0 <= number < signal.NSIG:
        raise Refused("Invalid --signal specification")
    return int(number), int(match[3] or 60), "B" in (match[1] or "")
