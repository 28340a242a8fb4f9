"""How a run scales, and how a grid's runs compare, as text. Pure."""

import textwrap
from typing import TYPE_CHECKING

from lumitui.app.cli.views.tables import table
from lumitui.app.runs import spell_out

if TYPE_CHECKING:
    from lumitui.app.runs import Scaling, SizeAdvice, Sweep


def scaling_text(study: "Scaling", advice: "SizeAdvice", columns: int) -> str:
    """Return how a run scales: a table, then sentences."""
    from lumitui.app.runs import scaling_words

    sizes = scaling_words.table(study)
    titles = [title.upper() for title in sizes.titles]
    sentences = [scaling_words.heading(study)]
    if study.measured:
        sentences += (
            scaling_words.basis(study),
            *scaling_words.notes(study),
            scaling_words.recommendation(study, advice),
        )
    else:
        sentences += scaling_words.notes(study)
    first, *rest = (textwrap.fill(spell_out(text), columns) for text in sentences)
    rows = table(titles, sizes.rows, columns, shrink=(len(titles) - 1, 3))
    return "\n\n".join((first, rows, *rest))


def grid_text(sweep: "Sweep", columns: int) -> str:
    """Return the runs of a grid as a table, then the advice."""
    rows = [row.cells for row in sweep.rows]
    titles = [title.upper() for title in sweep.titles]
    text_table = table(titles, rows, columns, shrink=(len(titles) - 1, 0), ids=len(titles) - 1)
    return "\n\n".join((text_table, *(textwrap.fill(text, columns) for text in sweep.advice)))
