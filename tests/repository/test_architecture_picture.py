"""docs/architecture.svg shows the rooms and the imports that the code has: `make picture`."""

import pytest

from tests.repository.floors import floors_of, plan
from tests.repository.picture import PICTURE, draw, drawn, read_code

ROOMS = {"low.a": 60.0, "low.b": 60.0, "low.c": 60.0}
ARROWS = [("low.a", "low.b"), ("low.a", "low.c"), ("low.b", "low.c")]


def test_the_picture_has_the_rooms_and_arrows_of_the_code() -> None:
    rooms, arrows = drawn(PICTURE.read_text(encoding="utf-8"))
    code_rooms, code_arrows = read_code()
    assert (set(rooms), arrows) == (set(code_rooms), code_arrows), "run `make picture`"


@pytest.mark.slow
def test_the_same_code_gives_the_same_picture() -> None:
    rooms, arrows = read_code()
    assert draw(rooms, arrows) == draw(rooms, arrows[::-1])


def test_a_room_is_above_all_that_it_imports() -> None:
    assert floors_of(ROOMS, ARROWS) == {"low.c": 0, "low.b": 1, "low.a": 2}
    with pytest.raises(ValueError, match=r"a circle among \['low\.a', 'low\.b'\]"):
        floors_of(ROOMS, [("low.a", "low.b"), ("low.b", "low.a"), ("low.a", "low.c")])


def test_a_long_arrow_passes_beside_the_rooms_of_a_floor() -> None:
    placed = plan(ROOMS, ARROWS, 400)
    room, gap = sorted(placed.floors[1], key=lambda stop: stop.passing)
    assert (room.room, gap.room, gap.passing) == ("low.b", "low.c", True)
    assert abs(placed.x[room] - placed.x[gap]) > ROOMS["low.b"] / 2
    with pytest.raises(ValueError, match="floor 1 does not fit"):
        plan(ROOMS, ARROWS, 70)
