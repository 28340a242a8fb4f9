"""The row of ranks: it fits, its chips can be clicked on, and thousands are as readable as two."""

from rich.cells import cell_len

from lumitui.app.explain.log_words import RankMark
from lumitui.app.tui.widgets.log.rank_chips import chips, neighbour

FAILED, RAISED = RankMark(1, "failed first", failed=True), RankMark(1, "traceback", failed=False)


def test_the_row_fits_and_each_chip_is_where_it_is_drawn() -> None:
    for ranks in (range(2), range(16), range(8192)):
        for chosen in (None, 0, 1, ranks[-1]):
            for width in (40, 80, 200):
                for mark in (FAILED, RAISED, None):
                    fits(ranks, chosen, mark, width)


def fits(ranks: range, chosen: int | None, mark: RankMark | None, width: int) -> None:
    text, places = chips(ranks, chosen, mark, width)
    assert cell_len(text.plain) <= width
    assert chosen in [rank for *_, rank in places], "what is chosen is shown"
    for first, last, rank in places:
        drawn = text.plain[first:last]
        assert str("all" if rank is None else rank) in drawn
        assert drawn.startswith("[") == (rank == chosen)


def test_the_row_names_its_keys_and_only_a_rank_that_failed_leaves_its_place() -> None:
    def row(mark: RankMark | None, width: int = 80, keys: str = ", .") -> str:
        return chips(range(3), None, mark, width, keys)[0].plain

    assert row(FAILED) == "ranks (, .) [all] ●1 failed first  0  2 "
    assert row(RAISED, keys="< ctrl+x") == "ranks (< ctrl+x) [all] 0  1 traceback  2 "
    assert row(None, 40) == ", . [all] 0  1  2 "


def test_the_keys_go_round() -> None:
    assert [neighbour([0, 3, 9], at, 1) for at in (None, 0, 3, 9)] == [0, 3, 9, None]
    assert neighbour([0, 3, 9], None, -1) == 9 and neighbour([0, 3], 7, 1) == 0
