"""The demo's job file: a small training on this machine."""

import importlib.util
import os
from pathlib import Path

from lumitui.app.job import examples
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites

FOLDER = Path("lumitui-demo")
"""Where the demo is, from where the user is."""


def this_machine() -> Site:
    """Return the built-in site whose jobs are plain processes."""
    known = Sites([BUILT_IN])
    return next(site for site in map(known.load, known.names()) if site.scheduler == "process")


def prepare(folder: Path) -> Path:
    """Return the demo's job file in `folder`, created when it is missing.

    Raises:
        InputError: no python here has torch.
        LumiError: the folder cannot be made.
    """
    # Without LUMITUI_PYTHON a job on this machine runs with this very Python (supervisor.py).
    if not os.environ.get("LUMITUI_PYTHON") and importlib.util.find_spec("torch") is None:
        raise InputError(
            "The demo trains with PyTorch, and this Python has none.",
            "Run `pip install 'lumitui[trainers]'`, or set LUMITUI_PYTHON to a python with torch.",
        )
    job = folder / "job.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LumiError(
            f"The folder {folder} cannot be made: {error.strerror}.", "Name another one with --to."
        ) from error
    if not job.exists():
        text = examples.text_for(this_machine(), examples.Beginning("demo"))
        examples.write_new(job, text)
    return job
