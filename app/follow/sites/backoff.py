"""How often a site is asked about jobs that its queue and its accounting no longer know."""

from collections.abc import Sequence

from lumitui.app.history.run import Run
from lumitui.remote.site.states import State

DAY = 86_400.0


class Backoff:
    """Which runs to ask about: an unknown one ever more rarely, since accounting is slow to search.

    After one poll the next comes when the time since the last news has grown by half: about 20
    on the first day, and one a day from the third on. Kept in memory: a new process asks once.
    """

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self._asked: dict[str, float] = {}

    def due(self, runs: Sequence[Run], now: float, *, attended: bool) -> list[Run]:
        """Return those of `runs` to ask about at `now` (epoch seconds); all when `attended`."""
        found = []
        for run in runs:
            if run.state is not State.UNKNOWN:
                self._asked.pop(run.id, None)
            elif not attended and not self._is_due(run, now):
                continue
            else:
                self._asked[run.id] = now
            found.append(run)
        return found

    def _is_due(self, run: Run, now: float) -> bool:
        asked = self._asked.get(run.id)
        if asked is None or asked > now:  # a clock that was set back must not silence it
            return True
        return now - asked >= min(DAY, (asked - (run.updated or run.created)) / 2)
