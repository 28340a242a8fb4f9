"""The errors, the states and the safe printing of text, for the interfaces.

Nothing here imports more than these few modules of `remote.site`.
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
    "State",
    "WaitTimedOut",
    "comment",
    "lines_of",
    "spell_out",
]
