"""A ZeRO checkpoint that is divided anew for other ranks, when that fails."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.trainers.ranks import Load

# In place of DeepSpeed's converter, for which the disk has no room.
FULL = """#!/bin/sh
while [ $# -gt 0 ]; do
  if [ "$1" = --output_folder ]; then mkdir -p "$2" && echo half >"$2/part"; fi
  shift
done
echo "OSError: [Errno 28] No space left on device"
exit 1
"""


def test_a_disk_that_is_full_gets_its_room_back_and_a_sentence_is_said(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = ""
    for part in ("deepspeed", "runtime", "checkpoint_engine", "torch_checkpoint_engine"):
        name = f"{name}.{part}".lstrip(".")
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
    module.TorchCheckpointEngine = object  # type: ignore[attr-defined]
    sys.modules["deepspeed"].DeepSpeedEngine = object  # type: ignore[attr-defined]
    parts, ranks = load("strategies.zero"), load("engine.ranks")
    monkeypatch.setattr(ranks, "gather", lambda value, group=None: [value])
    monkeypatch.setattr(load("torch.distributed"), "new_group", lambda **_: None)
    program = tmp_path / "python"
    program.write_text(FULL)
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    saved = tmp_path / "checkpoints" / "start-0001-step-00000004"
    saved.mkdir(parents=True)
    me = ranks.Ranks(0, 0, 1, tmp_path)
    words = (
        r"could not repartition .* \(OSError: .* No space left on device\)\. Resume with as many"
    )
    with (
        pytest.raises(load("engine.exits").UsageError, match=words),
        parts.universal(saved, me, "adamw", 2),
    ):
        pass
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]
