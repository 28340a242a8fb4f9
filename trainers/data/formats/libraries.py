"""Libraries that only some data need: imported when the first of these are read."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from engine.reporting import UsageError


def library(module: str, reads: str, name: str, where: str = "") -> Any:
    """A module, or what to do without it.

    Args:
        module: to import.
        reads: what it reads, in an error.
        name: under which it is installed.
        where: the images are to be packed when it can't be.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{reads}, which is not installed here. Install {name}, or pack the images"
            f"{where} with pack.py: packed ones need nothing."
        ) from error
