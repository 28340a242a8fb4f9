"""Python in a process of its own, which a test may kill."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.places import ROOT


def child(code: str, *words: str, stdin: bool = False) -> subprocess.Popen[str]:
    """Start Python on `code` with `words` as its arguments."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=environment,
        cwd=ROOT,
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def is_gone(pid: str) -> bool:
    """Whether a process has ended; a zombie that nobody has collected yet has."""
    try:
        return ") Z " in Path("/proc", pid, "stat").read_text()
    except OSError:
        return True
