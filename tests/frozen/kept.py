"""The kept entries, one file for each kind of thing users see, and what differs from them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.frozen.collected import Entry

FOLDER = Path(__file__).parent


def read(kind: str) -> dict[str, Entry]:
    """Return the kept entries of a kind by their names; none if the kind is new."""
    path = FOLDER / f"{kind}.tsv"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    entries = (Entry(*line.split("\t")) for line in lines)
    return {entry.name: entry for entry in entries}


def write(kind: str, entries: Mapping[str, Entry]) -> None:
    """Keep the entries of a kind."""
    text = "".join(f"{entry.line}\n" for entry in entries.values())
    (FOLDER / f"{kind}.tsv").write_text(text, "utf-8")


def differences(kept: Mapping[str, Entry], now: Mapping[str, Entry]) -> Iterator[str]:
    """Yield a line for each entry that is new, gone or changed."""
    for name in sorted(kept.keys() | now.keys()):
        old, new = kept.get(name), now.get(name)
        if old is None or new is None:
            yield f"{name}: {'new' if old is None else 'gone'}"
        elif old.digest != new.digest:
            words = "the words are the same" if old.words == new.words else _changed(old, new)
            yield f"{name}: {words}"


def _changed(old: Entry, new: Entry) -> str:
    """Say which of an entry's words have gone and which are new."""
    before, after = old.words.split(), new.words.split()
    gone = [word for word in before if word not in after]
    come = [word for word in after if word not in before]
    return " ".join([*(f"-{word}" for word in gone), *(f"+{word}" for word in come)]) or "order"
