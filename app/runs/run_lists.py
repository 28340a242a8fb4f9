"""Which runs a list has: its filter, its order, and tags."""

from lumitui.app.history.listing.filter_syntax import parse
from lumitui.app.history.listing.find_runs import Filter
from lumitui.app.history.listing.order import By, Order
from lumitui.app.history.listing.tags import told, with_tags

__all__ = [
    "By",
    "Filter",
    "Order",
    "parse",
    "told",
    "with_tags",
]
