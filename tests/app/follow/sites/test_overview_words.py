"""What is said of a site's answer: how old it is, and that there is none."""

import pytest

from lumitui.app.follow.sites.overview_words import no_overview_yet, overview_age


@pytest.mark.parametrize(
    ("answered", "tried", "asking", "said"),
    [
        (None, None, True, "asking …"),
        (None, None, False, "not asked"),
        (None, 95.0, False, "queried 5s ago, no answer"),
        (38.0, 38.0, False, "1m02 ago"),
        (38.0, None, False, "1m02 ago"),
        (38.0, 95.0, False, "1m02 ago, queried 5s ago, no answer"),
    ],
)
def test_a_site_that_was_asked_is_not_called_unasked(
    answered: float | None, tried: float | None, asking: bool, said: str
) -> None:
    assert overview_age(answered, tried, 100.0, asking=asking) == said


def test_the_first_second_says_what_is_going_on() -> None:
    assert no_overview_yet("lumi", asking=True).startswith("Querying lumi for its nodes")
    assert no_overview_yet("lumi", asking=False).endswith("Press r to query it again.")
