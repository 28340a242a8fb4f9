"""Meanings of a job's state, its program's exit code and the lines of its log. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lumitui.remote.site.states import State


@dataclass(frozen=True)
class Meaning:
    """A diagnosis: what happened and what to try."""

    id: str
    sentence: str
    do: str


STATE_RULES: Mapping[State, Meaning] = {
    State.TIMEOUT: Meaning(
        "time-limit",
        "The job reached its time limit.",
        "Continue from the last checkpoint, with more `time:` or more nodes.",
    ),
    State.CANCELLED: Meaning(
        "cancelled",
        "The job was cancelled.",
        "Resubmit it if that was a mistake; if an administrator did it, read the site's news.",
    ),
    State.OUT_OF_MEMORY: Meaning(
        "host-memory",
        "Slurm killed a process that used more main memory than the job requested.",
        "Use fewer data-loader workers, or request more `memory:` or whole nodes.",
    ),
    State.NODE_FAILED: Meaning(
        "node-failed",
        "A node failed; the job is not to blame.",
        "Resubmit from the last checkpoint; exclude the node with `sbatch: [--exclude=NODE]`.",
    ),
    State.PREEMPTED: Meaning(
        "preempted",
        "Another job with a higher priority took the nodes.",
        "Resubmit from the last checkpoint, or choose a partition without preemption.",
    ),
    State.REFUSED: Meaning(
        "refused",
        "The site refused the submission; no job was created.",
        "Fix what the message names, then submit again.",
    ),
    State.NOT_SENT: Meaning(
        "not-sent", "No job was created, and none can start any more.", "Submit it again."
    ),
    State.UNKNOWN: Meaning(
        "unknown-end",
        "lumitui does not know yet whether there is a job, or how it ended.",
        "Refresh, and do not submit it again until the outcome is known.",
    ),
}

EXIT_CODES: Mapping[int, Meaning] = {
    2: Meaning("usage", "The program refused to start.", "Fix `args:`."),
    78: Meaning(
        "proof-strict",
        "The ranks did not get their planned cores, so `proof: strict` ended the job.",
        "Read the proof; use whole nodes, or `proof: on` to run anyway.",
    ),
    85: Meaning(
        "stopped-early",
        "The trainer stopped early on a signal; its checkpoint is saved, and nothing is lost.",
        "Resubmit from the checkpoint, with more `time:` if the limit was near.",
    ),
    86: Meaning(
        "diverged",
        "The loss was not finite for several steps; the trainer saved no checkpoint of them.",
        "Resubmit from the checkpoint with a lower learning rate, or inspect the data.",
    ),
    87: Meaning(
        "overtaken",
        "A later attempt is using the run's folder, so this one ended without saving.",
        "Follow the later attempt; nothing is lost.",
    ),
    126: Meaning(
        "not-executable",
        "The program cannot be executed.",
        "Check its path and permissions.",
    ),
    127: Meaning(
        "no-command",
        "The program was not found.",
        "Check the container and the name of the interpreter.",
    ),
    134: Meaning(
        "aborted",
        "The program aborted (signal 6), usually in the communication library.",
        "Read that rank's last lines in the log.",
    ),
    135: Meaning(
        "bus-error",
        "The program crashed with a bus error (signal 7).",
        "Use fewer data-loader workers: /dev/shm may be full.",
    ),
    137: Meaning(
        "killed",
        "The program was killed (signal 9): out of memory, or ended by the launcher.",
        "Find the rank that ended first; if it is this one, it used too much main memory.",
    ),
    139: Meaning(
        "segfault",
        "The program crashed with a segmentation fault (signal 11).",
        "Set PYTHONFAULTHANDLER to 1 in `env:` to find the line; try another library version.",
    ),
    143: Meaning(
        "terminated",
        "The launcher or a cancellation ended the program (signal 15).",
        "Find the rank that ended first.",
    ),
}
"""Exit codes; 128 + n is signal n (bash(1), EXIT STATUS)."""

OF_THE_FIRST: Mapping[int, Meaning] = {
    137: Meaning(
        "killed",
        "The program ended first: it was killed (signal 9), but Slurm did not report that it "
        "ran out of memory.",
        "Check the log for the rank's last action. If your program does not kill processes "
        "itself, ask the site for the node's kernel messages at that time.",
    ),
    143: Meaning(
        "terminated",
        "The program ended first: it was told to end (signal 15).",
        "Check the log for the rank's last action, and whether your program or a user ended it.",
    ),
}
"""Exit codes of a rank that is known to be the first that ended."""

CHAIN_ENDS: Mapping[str, Meaning] = {
    "used-up": Meaning(
        "chain-used-up",
        "The run has used all its time limits; its checkpoint is saved, and nothing is lost.",
        "Resubmit from the checkpoint, with a larger `chain:` if training is not done.",
    ),
    "no-progress": Meaning(
        "chain-no-progress",
        "An attempt trained nothing new, so another time limit would have changed nothing.",
        "Check the log to see what took so long, or set more `time:`; then resubmit from the "
        "checkpoint.",
    ),
    "unsaved": Meaning(
        "chain-unsaved",
        "An attempt exited with 85 but saved no new file in checkpoints/ or in another folder "
        "named in the job file, so the chain ended.",
        "Make the script save to $RUN_DIR/checkpoints before it exits with 85. If it saves "
        "elsewhere, make it create a file in checkpoints/ after each save.",
    ),
    "refused": Meaning(
        "chain-refused",
        "The job could not be requeued; its checkpoint is saved, and nothing is lost.",
        "Resubmit from the checkpoint.",
    ),
}
"""Reasons why a chain ended before its training, by `AttemptRecord.end`."""


@dataclass(frozen=True)
class LogRule(Meaning):
    """A meaning, and the pattern of the log line that shows it."""

    pattern: re.Pattern[str]


def log_rule(name: str, pattern: str, sentence: str, do: str) -> LogRule:
    """Return a rule; `{what}` in `sentence` stands for the text of the groups of `pattern`."""
    return LogRule(name, sentence, do, re.compile(pattern))
