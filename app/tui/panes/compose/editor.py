"""A text edited in the user's own editor, while the terminal interface waits."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from textual.app import App, SuspendNotSupported

from lumitui.app.runs import InputError, LumiError

_FALLBACK = "vi"
_MOST_BYTES = 1_000_000


def _editor_words() -> list[str]:
    """Return the editor's command: $VISUAL, $EDITOR or vi.

    Raises:
        InputError: the command has an unclosed quote.
    """
    text = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _FALLBACK
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(
            f"$EDITOR={text!r} is not a command.", "Set it to the command of an editor."
        ) from error
    return words or [_FALLBACK]


def edited(app: App[int], text: str) -> str:
    """Return `text` after editing; the editor works on a copy.

    Raises:
        InputError: the editor does not exist, or this terminal cannot run it.
        LumiError: the editor failed, or saved a file that is not UTF-8.
    """
    words = _editor_words()
    with tempfile.TemporaryDirectory(prefix="lumitui-") as folder:
        path = Path(folder) / "job.yaml"
        path.write_text(text, encoding="utf-8", newline="")
        try:
            with app.suspend():
                done = subprocess.run([*words, str(path)], check=False)
        except SuspendNotSupported as error:
            raise InputError(
                "lumitui cannot start an editor in this terminal.",
                "Edit the YAML view instead (F2).",
            ) from error
        except OSError as error:
            raise InputError(
                f"The editor {words[0]} cannot be started: {error.strerror}.", "Set $EDITOR."
            ) from error
        if done.returncode:
            raise LumiError(
                f"The editor {words[0]} exited with {done.returncode}.", "The text is unchanged."
            )
        try:
            return path.read_bytes()[:_MOST_BYTES].decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise LumiError(
                f"{words[0]} saved a file that is not UTF-8: {error}.", "The text is unchanged."
            ) from error
