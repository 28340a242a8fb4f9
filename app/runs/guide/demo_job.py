"""The demo's job file: a small training on this machine."""

import importlib.util
import os
from pathlib import Path

from lumitui.app.job import examples
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites

FOLDER = Path("lumitui-demo")
"""The demo's folder, relative to the current one."""


def this_machine() -> Site:
    """Return the built-in site whose jobs are plain processes."""
    sites = Sites([BUILT_IN])
    return next(site for site in map(sites.load, sites.names()) if site.scheduler == "process")


def prepare(folder: Path) -> Path:
    """Return the demo's job file in `folder`; create it if it is missing.

    Raises:
        InputError: this Python lacks torch, and LUMITUI_PYTHON is not set.
        LumiError: the folder cannot be created.
    """
    # Without LUMITUI_PYTHON, a job on this machine uses this Python (supervisor.py).
    if not os.environ.get("LUMITUI_PYTHON") and importlib.util.find_spec("torch") is None:
        raise InputError(
            "The demo needs PyTorch, which this Python lacks.",
            "Run `pip install 'lumitui[trainers]'`, or set LUMITUI_PYTHON to a Python with torch.",
        )
    job = folder / "job.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LumiError(
            f"Cannot create the folder {folder}: {error.strerror}.", "Name another one with --to."
        ) from error
    if not job.exists():
        text = examples.text_for(this_machine(), examples.Beginning("demo"))
        examples.write_new(job, text)
    return job
