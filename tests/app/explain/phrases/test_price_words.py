"""A job's price in one line: at most, probably, and beside what is left."""

from dataclasses import replace

from lumitui.app.explain.run_phrases import (
    Outlook,
    price_outlook,
    price_outlook_sentence,
)
from lumitui.app.job.launch import Price

PRICE = Outlook(Price(32.0, "GPU-hours", 16.0))
LIKE = replace(PRICE, about=6.1, like="ab12")
ALL = replace(LIKE, left=812.0, limit=1000.0, asked=1000.0)


def test_as_much_is_said_as_is_known() -> None:
    assert price_outlook(PRICE, 0) == "at most 32 GPU-hours"
    assert price_outlook(LIKE, 0) == "at most 32 GPU-hours, about 6.10 if it runs like ab12"
    assert price_outlook(ALL, 1180) == (
        "at most 32 GPU-hours, about 6.10 if it runs like ab12; 812 of 1,000 GPU-hours left "
        "(queried 3 min ago)"
    )
    assert "if it scales as ab12" in price_outlook(replace(LIKE, other_size=True), 0)
    assert price_outlook(replace(PRICE, left=5.0), 0).endswith("; 5 GPU-hours left")
    used = replace(PRICE, left=-3.0, limit=10.0)
    assert price_outlook(used, 0).endswith("; nothing of 10 GPU-hours left")


def test_what_costs_nothing_is_said_to() -> None:
    free = Outlook(Price(0.0, "GPU-hours", 0.0))
    assert price_outlook_sentence(free, 0) == "nothing is billed"
    assert price_outlook_sentence(PRICE, 0) == "billed at most 32 GPU-hours"
