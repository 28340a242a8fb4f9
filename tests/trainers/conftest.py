"""The trainers' modules, imported as the trainers do it."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from tests.support.places import TRAINER_MODULES, TRAINERS

Load = Callable[[str], ModuleType]


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
