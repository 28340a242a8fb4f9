"""The row of ranks: it fits, its chips can be clicked on, and thousands are as readable as two."""

from rich.cells import cell_len

from lumitui.app.tui.widgets.log.rank_chips import chips, neighbour


def test_the_row_fits_and_each_chip_is_where_it_is_drawn() -> None:
    for ranks in (range(2), range(16), range(8192)):
        for chosen in (None, 0, 1, ranks[-1]):
            for width in (40, 80, 200):
                text, places = chips(ranks, chosen, 1, width)
                assert cell_len(text.plain) <= width
                assert chosen in [rank for *_, rank in places], "what is chosen is shown"
                for first, last, rank in places:
                    drawn = text.plain[first:last]
                    assert str("all" if rank is None else rank) in drawn
                    assert drawn.startswith("[") == (rank == chosen)


def test_the_keys_go_round() -> None:
    assert [neighbour([0, 3, 9], at, 1) for at in (None, 0, 3, 9)] == [0, 3, 9, None]
    assert neighbour([0, 3, 9], None, -1) == 9 and neighbour([0, 3], 7, 1) == 0
