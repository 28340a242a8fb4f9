"""A job's price in one line: at most, probably, and beside what is left. Pure."""

from dataclasses import dataclass

from lumitui.app.explain import words
from lumitui.app.job.launch import Price


@dataclass(frozen=True)
class Outlook:
    """What there is to say of a job's price; None: not known."""

    price: Price
    about: float | None = None
    """What it is billed if it runs like an earlier run."""
    like: str = ""
    """That run."""
    other_size: bool = False
    """Whether that run had another size, from which this one's time was predicted."""
    left: float | None = None
    """What its account has left."""
    limit: float | None = None
    """What it was granted."""
    asked: float | None = None
    """When the site said so, in epoch seconds."""


def price_outlook(outlook: Outlook, now: float) -> str:
    """Return the price, what it probably is, and what is left.

    Like `at most 32 GPU-hours, about 6.10 if it runs like ab12; 812 of 1,000 GPU-hours left (asked
    3 min ago)`.
    """
    text = words.price_limit(outlook.price)
    if outlook.about is not None:
        how = "scales as" if outlook.other_size else "runs like"
        text += f", about {words.price(outlook.about)} if it {how} {outlook.like}"
    if outlook.left is not None:
        text += f"; {_left(outlook)} left"
        if outlook.asked is not None:
            text += f" (asked {words.length(max(0.0, now - outlook.asked))} ago)"
    return text


def price_outlook_sentence(outlook: Outlook, now: float) -> str:
    """Return the same as a sentence's end: `billed at most 32 GPU-hours …`."""
    if not outlook.price.amount:
        return "nothing is billed"
    return f"billed {price_outlook(outlook, now)}"


def _left(outlook: Outlook) -> str:
    left = words.price(outlook.left or 0.0) if (outlook.left or 0.0) > 0 else "nothing"
    if outlook.limit is None:
        return f"{left} {outlook.price.unit}"
    return f"{left} of {words.price(outlook.limit)} {outlook.price.unit}"
