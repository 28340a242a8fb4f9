"""What is known of the history's file itself."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FileFacts:
    """What is known of the file itself."""

    path: Path
    schema: int
    size: int
    """Bytes, with what is not yet written back from the write-ahead log."""
    damage: str | None
    """What SQLite's check found, '' when it is sound; None: it was not checked."""
    lost_texts: int | None
    """How many texts of runs cannot be read; None: they were not checked."""
