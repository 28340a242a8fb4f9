"""Fixtures of the trainers: their modules, and what they need."""

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.places import TRAINER_MODULES, TRAINERS
from tests.support.trainers.forked import PYTHON
from tests.support.trainers.ranks import Load


@pytest.fixture(scope="module")
def load() -> Iterator[Load]:
    """Import a trainers' module as the trainers do: by its own name, from its own folder."""
    if not importlib.util.find_spec("torch"):
        pytest.skip("PyTorch is not installed")
    sys.path.insert(0, str(TRAINERS))
    yield importlib.import_module
    sys.path.remove(str(TRAINERS))
    for name in list(sys.modules):
        if name.split(".")[0] in TRAINER_MODULES:
            del sys.modules[name]


@pytest.fixture(scope="session")
def needs_torch() -> None:
    """Skip where the Python that trains has no PyTorch."""
    program = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    if subprocess.run([PYTHON, "-c", program], check=False, timeout=60).returncode:
        pytest.skip(f"{PYTHON} has no PyTorch")


@pytest.fixture
def needs_lightning() -> None:
    """Skip where PyTorch Lightning is not installed."""
    if not importlib.util.find_spec("lightning"):
        pytest.skip("PyTorch Lightning is not installed")


@pytest.fixture
def needs_deepspeed() -> None:
    """Skip where DeepSpeed is not installed."""
    if not importlib.util.find_spec("deepspeed"):
        pytest.skip("DeepSpeed is not installed")
