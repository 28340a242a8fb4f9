"""The door: what the command line, the screens and a notebook ask of the core.

`Runs` is everything that can be done with jobs; it is imported when it is asked for. The errors,
the states and the safe printing of text are here at once: `lumitui --version` has them, too. What
else the interfaces need of other packages, the modules beside this give by subject.
"""

from lumitui.remote.site.errors import (
    AnswerNeeded,
    HistoryError,
    InputError,
    LinkError,
    LumiError,
    OutcomeUnknown,
    RefusedError,
    RunFailed,
    WaitTimedOut,
)
from lumitui.remote.site.safe_text import LogFilter, comment, lines_of, spell_out
from lumitui.remote.site.states import State

TYPE_CHECKING = False  # `typing` alone would take longer than this package
if TYPE_CHECKING:
    from lumitui.app.runs.facade import Runs

__all__ = [
    "AnswerNeeded",
    "HistoryError",
    "InputError",
    "LinkError",
    "LogFilter",
    "LumiError",
    "OutcomeUnknown",
    "RefusedError",
    "RunFailed",
    "Runs",
    "State",
    "WaitTimedOut",
    "comment",
    "lines_of",
    "spell_out",
]


def __getattr__(name: str) -> object:
    """Import `Runs` when it is asked for."""
    if name != "Runs":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lumitui.app.runs.facade import Runs

    globals()[name] = Runs
    return Runs
