"""Python in a process of its own, which a test may kill."""

import os
import subprocess
import sys

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
