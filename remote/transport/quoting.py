"""The one quoting function: text that becomes exactly one word of a POSIX shell."""

import shlex

from lumitui.remote.errors import InputError


def quote(text: str) -> str:
    """Return `text` as one shell word.

    Raises:
        InputError: the text has a NUL, which no argument of a process can carry.
    """
    if "\0" in text:
        raise InputError(
            f"The text {text!r} has a NUL character, which no command can receive.",
            "Remove it from the job file.",
        )
    return shlex.quote(text)
