"""The examples of own scripts stop, save and resume as docs/scripts.md says a script may."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.trainers.own_scripts import (
    JAX,
    SCRIPTS,
    STEPS,
    environment,
    events,
    horovod_python,
    run_script,
)
from tests.support.trainers.ranks import STOPPED_EARLY, losses

PYTHONS: dict[str, Callable[[], Path | None]] = {
    "simple-ddp/simple_ddp.py": lambda: None,
    "jax/train.py": lambda: environment("jax", JAX),
    "horovod/train.py": horovod_python,
}
SLOW = ("jax/train.py", "horovod/train.py")
"""They bring an environment of their own."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PYTHONS],
)
def test_a_script_stops_when_asked_and_goes_on_as_if_it_had_not(tmp_path: Path, name: str) -> None:
    python, script = PYTHONS[name](), SCRIPTS / name
    words = ("--steps", str(STEPS), "--save-every", "5")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run_script(whole, 2, python, script, *words) == [0, 0]
    found = losses(whole)
    assert list(found) == list(range(1, STEPS + 1)) and found[STEPS] < found[1]
    assert events(whole) == ["start", "end"]
    assert len(list((whole / "checkpoints").iterdir())) == 3  # after 5, 10 and 12

    parts.mkdir()
    (parts / "stop").touch()
    assert run_script(parts, 2, python, script, *words) == [STOPPED_EARLY] * 2
    assert len(list((parts / "checkpoints").iterdir())) == 1
    (parts / "stop").unlink()
    assert run_script(parts, 2, python, script, *words, "--resume") == [0, 0]
    assert events(parts) == ["start", "stop", "start", "end"]
    assert losses(parts) == pytest.approx(found, rel=1e-5)


@pytest.mark.slow
def test_jax_learns_the_same_on_any_number_of_ranks(tmp_path: Path) -> None:
    python, script, words = (
        PYTHONS["jax/train.py"](),
        SCRIPTS / "jax" / "train.py",
        ("--steps", "12"),
    )
    run_script(tmp_path / "one", 1, python, script, *words, "--batch-size", "64")
    run_script(tmp_path / "two", 2, python, script, *words, "--batch-size", "32")
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
