"""The door: what the command line, the screens and a notebook ask of the core.

`Runs` is everything that can be done with jobs. Nothing is imported before it is asked for:
`lumitui --version` passes here, too.
"""

TYPE_CHECKING = False  # `typing` alone would take longer than this package
if TYPE_CHECKING:
    from lumitui.app.runs.facade import Runs

__all__ = ["Runs"]


def __getattr__(name: str) -> object:
    """Import `Runs` when it is asked for."""
    if name != "Runs":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lumitui.app.runs.facade import Runs

    globals()[name] = Runs
    return Runs
