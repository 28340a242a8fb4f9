"""Building a run's virtual environment on the login host, before its job is submitted."""

import re
import secrets
from collections.abc import Callable

from lumitui.remote.site.answer_fields import MOST_WORDS, last_words
from lumitui.remote.site.errors import LinkLost, RefusedError
from lumitui.remote.site.run_folder import VENV_SCRIPT
from lumitui.remote.site.shell_text import quote
from lumitui.remote.transport.answer_limits import limited
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

_MOST_SAID = 16 << 20
"""Most bytes that a build may print; pip prints some 100 for each package."""
_KEPT_LINES = 40
_SHOWN = re.compile(r"^(Collecting|Downloading|Installing|Building|lumitui:) ?\S")
_REASON = re.compile(r"^lumitui: the environment could not be built: (.*)$")


@purpose("send")
def build(transport: Transport, folder: str, seconds: float, report: Callable[[str], None]) -> None:
    """Build the environment of the run in `folder`, unless it is there or another run builds it.

    The build ends with the connection, and leaves nothing that is used.

    Args:
        transport: To the login host.
        folder: The run's folder, with its script.
        seconds: How long a build may take; a wait for another one is of the same order.
        report: Called with what the build does, a line at a time.

    Raises:
        RefusedError: pip, or the site, said no.
        LinkError: the link was lost.
    """
    end = f"lumitui-end-{secrets.token_hex(8)}"
    script = (
        f"cd {quote(folder)} && bash ./{VENV_SCRIPT} 2>&1; code=$?\n"
        f'printf "\\n%s %s\\n" {end} "$code"'
    )
    output: list[str] = []
    rest, code = b"", ""
    stream = transport.stream(script, stop=lambda: False)
    for chunk in limited(stream, most=_MOST_SAID, seconds=2 * seconds + 60):
        *lines, rest = (rest + chunk).split(b"\n")
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip()
            if line.startswith(f"{end} "):
                code = line.removeprefix(f"{end} ")
            elif line:
                output = [*output[-_KEPT_LINES:], line]
                if _SHOWN.match(line):
                    report(line.removeprefix("lumitui: ")[:MOST_WORDS])
    if not code:
        raise LinkLost("The build of the environment ended without an answer.", "Send it again.")
    if code != "0":
        raise RefusedError(
            f"The environment of `venv:` could not be built: {reason_of(output)}.",
            f"Correct `venv:` in the job file; {folder}/venv.log has all that pip said.",
        )


def reason_of(output: list[str]) -> str:
    """Return why a build failed: pip's last errors, at most two lines."""
    errors = [line.removeprefix("ERROR: ") for line in output if line.startswith("ERROR: ")]
    # pip's last line repeats which package it was; the one before it says what was searched.
    if errors:
        return "; ".join(dict.fromkeys(text.rstrip(". ") for text in errors[-2:]))[:MOST_WORDS]
    reasons = [match[1] for line in output if (match := _REASON.match(line))]
    return last_words(*reasons[-1:], "\n".join(output), default="it said nothing")
