"""Errors for the user, with the exit code of each."""

import errno
import os
from collections.abc import Iterable


def meant(word: str, names: Iterable[str]) -> str:
    """Return `Did you mean NAME? `, to put before the rest of a hint; "" if no name is similar."""
    from difflib import get_close_matches

    return "".join(f"Did you mean {one}? " for one in get_close_matches(word, [*names], 1))


class LumiError(Exception):
    """What happened, and what to try: two sentences for a user.

    `exit_code` is what the command line ends with; the children differ by it.
    """

    exit_code = 1
    heading = "That did not work"
    """The title of its dialog."""

    def __init__(self, message: str, hint: str = "") -> None:
        """Keep `message` (what happened) and `hint` (what to try)."""
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Both sentences."""
        return f"{self.message} {self.hint}".strip()


class InputError(LumiError):
    """A job file, a profile or a command line that cannot be used."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "", *, field: str = "") -> None:
        """Keep also the `field` of the job file that is wrong; "": no single one."""
        super().__init__(message, hint)
        self.field = field


class HistoryError(LumiError):
    """The laptop's own record of runs cannot be read or written."""


class LinkError(LumiError):
    """No connection to the site, or it was lost; nothing is known to have changed there."""

    exit_code = 3


class LinkLost(LinkError):
    """The link was cut after a request was sent: whether it was carried out is not known."""


class AnswerUnusable(LinkLost):
    """The site's answer is unusable: too large, or not the requested data.

    Like a lost reply, it does not say whether the request was carried out.
    """


class AnswerNeeded(LinkError):
    """A login needs a user's answer, and this request must not ask for one."""


class RefusedError(LumiError):
    """The cluster refused."""

    exit_code = 4


def folder_gone(folder: str) -> RefusedError:
    """Return the error about a run's folder that was deleted on its site."""
    return RefusedError(
        f"The run's folder no longer exists at the site: {folder}.",
        "Its log and results were deleted with it; `lumitui resubmit` can run the job again.",
    )


class RunFailed(LumiError):
    """The job itself failed (`submit --wait`, `logs -f`)."""

    exit_code = 5


class OutcomeUnknown(LumiError):
    """A job may or may not have been created; it is settled later and never guessed."""

    exit_code = 6


class NeverStarts(LumiError):
    """A queued job can never start, because a job it waits for did not end as required."""

    exit_code = 7


class InternalError(LumiError):
    """A defect of lumitui, whose traceback is in a crash report."""

    exit_code = 70  # EX_SOFTWARE of sysexits.h


class WaitTimedOut(LumiError):
    """The time limit for waiting passed; the job continues."""

    exit_code = 124


_REFUSED_PATHS = {
    errno.ENAMETOOLONG: "Choose names of at most 255 characters, and a shorter path.",
    errno.EACCES: "Choose a path that you may use, or ask its owner for access.",
    errno.EPERM: "Choose a path that you may change, or ask its owner for access.",
    errno.ENOTDIR: "A part of the path is a file: choose a folder.",
    errno.EISDIR: "The path is a folder: choose a file.",
    errno.ELOOP: "Its links form a loop: choose the path that you mean.",
    errno.EROFS: "Choose a path on a file system that you can write.",
}
"""What to try for each error that the path causes, not lumitui."""


def unusable_path(error: Exception) -> InputError | None:
    """Return the error for a path that the system refuses; None for another error."""
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop from "):
        error = OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(error)[18:].strip("'\""))
    if not isinstance(error, OSError) or not isinstance(error.filename, str | bytes):
        return None  # without a path, or with the number of a file that lumitui has open
    said, hint = f"Cannot use {os.fsdecode(error.filename)}: ", _REFUSED_PATHS.get(error.errno or 0)
    return InputError(f"{said}{error.strerror}.", hint) if hint else None
