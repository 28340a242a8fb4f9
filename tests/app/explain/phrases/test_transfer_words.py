"""One line about a transfer: a bar, bytes, rate, time left; it fits beside the steps of a send."""

from lumitui.app.explain.run_phrases import progress_line
from lumitui.remote.transfer.contents.shipment_progress import Meter, ShipmentProgress


def test_a_line_says_what_a_person_wants_to_know() -> None:
    line = progress_line(
        ShipmentProgress("DATA", "sending", 750_000_000, 3_000_000_000, 22_500_000.0)
    )
    assert line == "staging DATA [##......]  25% 750 MB of 3.0 GB 22 MB/s 1m40 left"
    longest = ShipmentProgress("N" * 20, "reading", 999_000_000, 999_000_000_000, 1_000_000.0)
    assert len(progress_line(longest)) <= 82
    assert progress_line(ShipmentProgress("D", "asking")) == "staging D: checking what the site has"
    assert (
        progress_line(ShipmentProgress("D", "sending", 0, 0))
        == "staging D [########] 100% 0 B of 0 B"
    )


def test_the_rate_is_of_the_last_ten_seconds_and_what_was_there_is_no_speed() -> None:
    told, clock = list[ShipmentProgress](), [0.0]
    meter = Meter("DATA", told.append, lambda: clock[0])
    meter.begin("sending", 1_000_000, 400_000)
    for second in range(1, 21):
        clock[0] = second
        list(meter.pass_on([b"x" * (1000 if second < 10 else 10_000)]))
    assert 9_000 <= told[-1].rate <= 10_000
    assert told[-1].done == 400_000 + 9 * 1000 + 11 * 10_000
    # Five reports a second at most, however small the pieces are.
    before = len(told)
    list(meter.pass_on([b"x"] * 1000))
    assert len(told) == before
