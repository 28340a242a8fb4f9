"""The `metrics:` patterns of a job file, searched in a log for a bounded time.

A person writes these regular expressions, and one like `(a+)+$` takes longer than the universe on
a line of forty characters. Python's `re` cannot be stopped and holds the interpreter's lock, so
that one pattern would freeze every thread: a process of its own can be ended.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from lumitui.remote.errors import InputError, LumiError

SECONDS = 3.0
"""For all patterns of a job on one piece of its log; usual ones take some milliseconds."""
_METRICS = Path(__file__).with_name("metrics.py")  # standard library only
_CHILD = """
import json, runpy, sys
text, patterns = json.loads(sys.stdin.buffer.read())
search = runpy.run_path(sys.argv[1])["series_from_log"]
for name, pattern in patterns:
    print(json.dumps([name, search(text, {name: pattern})[name]]), flush=True)
"""


def series_of(
    text: str, patterns: Mapping[str, str], *, seconds: float = SECONDS
) -> dict[str, list[float]]:
    """Return what `metrics.series_from_log` finds, in a bounded time.

    Raises:
        InputError: a pattern takes too long; it is named.
        LumiError: no process could be started.
    """
    if not patterns:
        return {}
    asked = json.dumps([text, list(patterns.items())]).encode()
    words = [sys.executable, "-I", "-S", "-c", _CHILD, str(_METRICS)]
    try:
        done = subprocess.run(words, input=asked, capture_output=True, timeout=seconds)
        out, slow = done.stdout, False
    except subprocess.TimeoutExpired as error:
        out, slow = error.stdout or b"", True
    except OSError as error:
        raise LumiError(
            f"The log's metrics could not be searched: {error.strerror}.", "Close some programs."
        ) from error
    found: dict[str, list[float]] = dict(json.loads(line) for line in out.splitlines())
    if missing := next((name for name in patterns if name not in found), None):
        what = f"takes more than {seconds:g} s on the log" if slow else "cannot be searched for"
        raise InputError(
            f"The pattern {missing} under `metrics:` {what}.",
            "Write it without repeats inside repeats, such as (a+)+.",
        )
    return found
