"""Compose, prove and scale multi-GPU training jobs on Slurm supercomputers.

`from lumitui import Runs` is the whole program for a notebook or a script of yours; docs/api.md
says what stays as it is. Nothing is imported before it is asked for.

The subpackages are links to the folders at the root of the repository (`app`, `remote`,
`templates`, `trainers`), so that a wheel installs `lumitui.app` and never a top-level `app`.
"""

TYPE_CHECKING = False  # `typing` alone would take longer than this package
if TYPE_CHECKING:
    from lumitui.app.runs import (
        AnswerNeeded,
        HistoryError,
        InputError,
        LinkError,
        LumiError,
        OutcomeUnknown,
        RefusedError,
        Runs,
        State,
    )

__all__ = [
    "AnswerNeeded",
    "HistoryError",
    "InputError",
    "LinkError",
    "LumiError",
    "OutcomeUnknown",
    "RefusedError",
    "Runs",
    "State",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lumitui.app import runs

    value: object = getattr(runs, name)
    return value
