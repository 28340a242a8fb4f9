"""Which cores a rank gets, and what a mask means."""

from lumitui.app.launch.core_binding import rank_bindings
from lumitui.app.launch.draft.mask_text import explain, explained_text
from lumitui.app.launch.draft.node_map import bind_text

__all__ = [
    "bind_text",
    "explain",
    "explained_text",
    "rank_bindings",
]
