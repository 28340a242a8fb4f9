"""What a user can try when a site or its scheduler refused a run."""

import re

from lumitui.app.history.run import Run

_NO_ACCESS = re.compile("permission denied|no such file", re.IGNORECASE)


def scheduler_hint(message: str) -> str:
    """Return what to try after sbatch's words (facts: LUMI error messages; sbatch(1))."""
    for pattern, hint in _HINTS:
        if re.search(pattern, message, re.IGNORECASE):
            return hint
    return "Fix what the message names in the job file, and submit again."


def membership_hint(message: str, run: Run) -> str | None:
    """Return what to try when the account's folder may be closed to the user; None: it is not.

    `message` is what the site answered when the folder of `run` was made.
    """
    account = run.spec.account
    if not _NO_ACCESS.search(message) or account not in run.root.split("/"):
        return None
    return (
        f"Are you a member of {account}? Check `account:` in the job file; "
        f"`lumitui site check {run.site} --account {account}` checks its folder."
    )


_HINTS = (
    (
        r"invalid account|account/partition combination",
        "Check `account:`: the project may be wrong, ended, or without GPU-hours.",
    ),
    (
        r"accounting/QOS policy|AssocMaxSubmit|QOSMaxSubmit",
        "The account has no hours left, or too many of your jobs wait; see `lumitui status`.",
    ),
    (
        r"sleeping and retrying|Resource temporarily unavailable",
        "The site's queue is full, also after two minutes of tries. Submit it again later.",
    ),
    (r"time limit|TimeLimit", "Ask for less time, or another partition."),
    (r"partition", "Check `partition:`; `lumitui site show` lists them."),
    (
        r"node configuration is not available|gres|more processors|CPU count",
        "Ask for what a node has: `lumitui site show` shows its GPUs, cores and memory.",
    ),
)
