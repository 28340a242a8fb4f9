"""How a run scales, and what a grid says, as text. Pure."""

import textwrap
from typing import TYPE_CHECKING

from lumitui.app.cli.views.tables import table
from lumitui.app.runs import spell_out

if TYPE_CHECKING:
    from lumitui.app.runs import Scaling, SizeAdvice, Sweep


def scaling_text(found: "Scaling", advice: "SizeAdvice", columns: int) -> str:
    """Return how a run scales: a table, then sentences."""
    from lumitui.app.runs import scaling_words

    shown = scaling_words.table(found)
    titles = [title.upper() for title in shown.titles]
    sentences = [scaling_words.heading(found)]
    if found.measured:
        sentences += (
            scaling_words.basis(found),
            *scaling_words.notes(found),
            scaling_words.recommendation(found, advice),
        )
    else:
        sentences += scaling_words.notes(found)
    first, *rest = (textwrap.fill(spell_out(text), columns) for text in sentences)
    rows = table(titles, shown.rows, columns, shrink=(len(titles) - 1, 3))
    return "\n\n".join((first, rows, *rest))


def grid_text(found: "Sweep", columns: int) -> str:
    """Return the runs of a grid as a table, then what it says of a setting."""
    rows = [row.cells for row in found.rows]
    titles = [title.upper() for title in found.titles]
    shown = table(titles, rows, columns, shrink=(len(titles) - 1, 0), ids=len(titles) - 1)
    return "\n\n".join((shown, *(textwrap.fill(text, columns) for text in found.advice)))
