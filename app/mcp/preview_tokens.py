"""Confirmation tokens: a preview gives one, and it confirms what that preview showed, once."""

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Sequence

from lumitui.app.runs import InputError, Preview

LIFE_SECONDS = 600.0
_MOST = 100
"""Tokens that wait at once; of more, the oldest is forgotten."""


def digest_of(action: str, subject: str, previews: Sequence[Preview] = ()) -> str:
    """Return a hash of what is done, to what, and of every byte that `previews` would send."""
    parts: list[object] = [action, subject]
    for one in previews:
        texts = sorted(one.launch.texts.items())
        spec = one.launch.spec.model_dump_json()
        parts.append(
            [one.site.name, one.command, str(one.project), one.files.snapshot, spec, texts]
        )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class PreviewTokens:
    """The tokens that one server has given and that still count. Threads may share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Let tokens age by `clock`, in seconds."""
        self._clock = clock
        self._given: dict[str, tuple[str, float]] = {}

    def give(self, digest: str) -> str:
        """Return a new token for what has this digest."""
        while len(self._given) >= _MOST:
            self._given.pop(next(iter(self._given)), None)
        token = secrets.token_hex(16)
        self._given[token] = digest, self._clock() + LIFE_SECONDS
        return token

    def redeem(self, token: str, digest: str) -> None:
        """Take a token back; it counts no more, whatever becomes of what it confirms.

        Raises:
            InputError: no preview gave it, it was used or is too old, or it confirms other bytes.
        """
        kept, end = self._given.pop(token, ("", 0.0))
        if not kept or self._clock() > end:
            raise InputError(
                "The confirmation token is invalid: no preview gave it, it was already used, or "
                "it is more than ten minutes old.",
                "lumitui did nothing. Preview again, and use the new token.",
            )
        if kept != digest:
            raise InputError(
                "The confirmation token is for a different action than this one.",
                "lumitui did nothing. Preview again, and use the new token.",
            )
