"""The trainer with PyTorch Lightning: what it says where that is missing."""

import sys

import pytest

from tests.support.trainers.ranks import Load


def test_without_lightning_a_sentence_says_what_to_install(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lightning", None)
    with pytest.raises(load("engine.exits").UsageError, match="Install `lightning` in"):
        load("strategies.lightning")
