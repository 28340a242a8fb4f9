"""Sentences for the user about the history itself, each of them handed out once."""

import threading


class PendingWarnings:
    """Warnings that nobody has taken yet. Threads may share it."""

    def __init__(self) -> None:
        """Start without a warning."""
        self._lock = threading.Lock()
        self._waiting: list[str] = []
        self._once: set[str] = set()

    def add(self, sentence: str) -> None:
        """Keep `sentence` until it is taken."""
        with self._lock:
            self._waiting.append(sentence)

    def add_once(self, sentence: str, key: str = "") -> None:
        """Keep `sentence`, unless it was added in this way before: every page would repeat it.

        With `key`, one sentence is kept of all that have this key.
        """
        with self._lock:
            if (key or sentence) not in self._once:
                self._once.add(key or sentence)
                self._waiting.append(sentence)

    def take(self) -> list[str]:
        """Return the warnings that were not taken yet, the oldest first."""
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken
