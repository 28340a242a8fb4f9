"""How a run scales, and how a grid's runs compare, as text. Pure."""

import textwrap
from typing import TYPE_CHECKING

from lumitui.app.cli.views.tables import table
from lumitui.app.runs import spell_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lumitui.app.runs import Scaling, SizeAdvice, Sweep


def scaling_text(study: "Scaling", advice: "SizeAdvice", columns: int) -> str:
    """Return how a run scales: a table, then sentences."""
    from lumitui.app.runs import scaling_words

    if not study.measured:  # a table of dashes
        return _paragraphs((scaling_words.heading(study), *scaling_words.notes(study)), columns)
    sizes = scaling_words.table(study)
    titles = [title.upper() for title in sizes.titles]
    after = (
        scaling_words.basis(study), *scaling_words.notes(study),
        scaling_words.recommendation(study, advice),
    )  # fmt: skip
    first, rest = (_paragraphs(some, columns) for some in ((scaling_words.heading(study),), after))
    rows = table(titles, sizes.rows, columns, shrink=(len(titles) - 1, 3))
    return f"{first}\n\n{rows}\n\n{rest}"


def grid_text(sweep: "Sweep", columns: int) -> str:
    """Return the runs of a grid as a table, then the advice."""
    rows = [row.cells for row in sweep.rows]
    titles = [title.upper() for title in sweep.titles]
    text_table = table(titles, rows, columns, shrink=(len(titles) - 1, 0), ids=len(titles) - 1)
    return "\n\n".join(filter(None, (text_table, _paragraphs(sweep.advice, columns))))


def _paragraphs(sentences: "Iterable[str]", columns: int) -> str:
    return "\n\n".join(textwrap.fill(spell_out(text), columns) for text in sentences)
