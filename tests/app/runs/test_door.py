"""The door gives what its list says, and loads nothing before it is asked for."""

import subprocess
import sys

import pytest

from lumitui.app import runs

HOMES: dict[str, tuple[str, str]] = vars(runs)["_HOMES"]


@pytest.mark.parametrize("name", sorted(HOMES))
def test_each_name_of_the_list_is_there(name: str) -> None:
    assert getattr(runs, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Rnus'"):
        _ = runs.Rnus  # type: ignore[attr-defined]


def test_the_door_itself_loads_no_other_package() -> None:
    words = "import sys, lumitui.app.runs as r; print(*(m for m in sys.modules if 'lumitui' in m))"
    loaded = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert sorted(loaded) == ["lumitui", "lumitui.app", "lumitui.app.runs"]
