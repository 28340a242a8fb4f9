"""Stores the findings printed by `preview`, so that `submit` does not repeat them."""

import hashlib
import json
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from lumitui.app.job.settings import write_whole
from lumitui.remote.site.answer_fields import json_of

FRESH_SECONDS = 3600.0
"""Seconds after which `submit` repeats the findings of a preview."""


class ShownFindings:
    """The findings that the last preview printed, in a small file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def keep(self, job: Path, texts: Collection[str]) -> None:
        """Keep the findings printed for a job file; ignore a full disk."""
        data = {"at": time.time(), "seen": [_digest(job, text) for text in texts]}
        with suppress(OSError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._file, json.dumps(data))

    def unseen(self, job: Path, texts: Sequence[str]) -> list[str]:
        """Return those of `texts` that no recent preview of the job file printed."""
        try:
            data = json_of(self._file.read_bytes())
        except OSError:
            return list(texts)
        match data:
            case {"at": float(at), "seen": list(seen)} if 0 <= time.time() - at < FRESH_SECONDS:
                return [text for text in texts if _digest(job, text) not in seen]
            case _:
                return list(texts)


def _digest(job: Path, text: str) -> str:
    return hashlib.sha256(f"{job.resolve()}\n{text}".encode(errors="replace")).hexdigest()[:16]
