"""What became of each part of a script: kept, derived, or lost."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Said:
    """A part of the script, and what became of it."""

    what: str
    """As the script has it, like `--gpu-bind=closest` or `module load PyTorch`."""
    words: str
    """In half a sentence without a full stop."""


@dataclass
class Notes:
    """What is said while a script is read."""

    kept: list[Said] = field(default_factory=list)
    derived: list[Said] = field(default_factory=list)
    """What lumitui works out by itself, so that the job file does not have it."""
    lost: list[Said] = field(default_factory=list)
    """What a job file cannot say, so that a person must look at it."""

    def keep(self, what: str, key: str) -> None:
        """Say that a part became a key of the job file."""
        self.kept.append(Said(what, f"`{key}:`"))

    def derive(self, what: str, words: str) -> None:
        """Say that a part is worked out by lumitui."""
        self.derived.append(Said(what, words))

    def lose(self, what: str, words: str) -> None:
        """Say that a part is not in the job file."""
        self.lost.append(Said(what, words))
