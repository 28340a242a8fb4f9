"""Where a training is, as its checkpoints say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from engine.reporting import UsageError

Settings = Mapping[str, object]
"""What of a training may change when it continues, but not without a word: numbers and texts."""


def changes(before: Settings, now: Settings) -> str:
    """What differs between the settings of a checkpoint and those of now; empty: nothing known."""
    both = [name for name in now if name in before and before[name] != now[name]]
    return ", ".join(f"{name} from {before[name]} to {now[name]}" for name in both)


@dataclass(frozen=True)
class Position:
    """How far a training has come, and what may not change when it continues."""

    model: str
    optimizer: str
    seed: int
    train_samples: int
    world_size: int
    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    """The current epoch, counted from 0."""
    samples: int = 0
    """Images of that epoch already used: a number of samples, not of steps, so that a training
    with another global batch continues at the right place."""

    def check_continues(self, saved: Position) -> None:
        """Refuse to continue a training of something else.

        Raises:
            UsageError: model, optimizer, seed or amount of data differ: the losses would make no
                sense.
        """
        for name in ("model", "optimizer", "seed", "train_samples"):
            if getattr(self, name) != getattr(saved, name):
                raise UsageError(
                    f"The checkpoint was made with {name.replace('_', ' ')} "
                    f"{getattr(saved, name)}, this run asks for {getattr(self, name)}. "
                    "Resume with the same arguments, or start in an empty run folder."
                )

    @classmethod
    def from_tree(cls, tree: object) -> Position:
        """Read a position back.

        Raises:
            UsageError: a field is missing or of another type.
        """
        values = tree if isinstance(tree, dict) else {}
        kinds = {one.name: {"str": str, "int": int}[str(one.type)] for one in fields(cls)}
        right = set(values) == set(kinds) and all(
            type(values[name]) is kind and (kind is str or name == "seed" or values[name] >= 0)
            for name, kind in kinds.items()
        )
        if not right:
            raise UsageError(
                "The checkpoint is not one of this trainer's. Start in an empty run folder."
            )
        return cls(**values)
