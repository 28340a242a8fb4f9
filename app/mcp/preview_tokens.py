"""Confirmation tokens: each confirms exactly one preview, once."""

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Sequence

from lumitui.app.runs import InputError, Preview

LIFE_SECONDS = 600.0
_MOST = 100
"""Maximum number of pending tokens; above that, the oldest is dropped."""


def digest_of(
    action: str, subject: str, previews: Sequence[Preview] = (), logins: Sequence[str] = ()
) -> str:
    """Return a hash of the action, its target, and every byte that `previews` would send.

    `logins` contains the user and host of each login.
    """
    parts: list[object] = [action, subject, *logins]
    for one in previews:
        texts = sorted(one.launch.texts.items())
        spec = one.launch.spec.model_dump_json()
        parts.append(
            [one.site.name, one.command, str(one.project), one.files.snapshot, spec, texts]
        )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class PreviewTokens:
    """The valid tokens of one server. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Measure tokens' ages with `clock`, in seconds, and with the time of day.

        The monotonic clock stops while a laptop sleeps, and the time of day may be set back.
        """
        self._clocks = (clock, time.time)
        self._given: dict[str, tuple[str, list[float]]] = {}

    def give(self, digest: str) -> str:
        """Return a new token for an action with this digest."""
        while len(self._given) >= _MOST:
            self._given.pop(next(iter(self._given)), None)
        token = secrets.token_hex(16)
        self._given[token] = digest, [clock() for clock in self._clocks]
        return token

    def redeem(self, token: str, digest: str) -> None:
        """Redeem a token; it is then invalid, whatever the result of its action.

        Raises:
            InputError: the token is unknown, used or too old, or it confirms other bytes.
        """
        kept, began = self._given.pop(token, ("", []))
        ages = (clock() - at for clock, at in zip(self._clocks, began, strict=False))
        if not kept or max(ages) > LIFE_SECONDS:
            raise InputError(
                "The confirmation token is invalid: no preview issued it, it was already used, or "
                "it is more than ten minutes old.",
                "lumitui did nothing. Preview again, and use the new token.",
            )
        if kept != digest:
            raise InputError(
                "The confirmation token is for a different action.",
                "lumitui did nothing. Preview again, and use the new token.",
            )
