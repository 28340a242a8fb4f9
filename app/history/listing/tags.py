"""Tags of a run: the words of its note that begin with `#`. Pure."""

import re
from collections.abc import Iterator

from lumitui.remote.site.errors import InputError

_TAG = re.compile(r"[\w.+-]{1,40}")


def tags_of(note: str) -> list[str]:
    """Return the tags in `note` in their order, without their `#`."""
    return [word[1:] for word in note.split(" ") if word.startswith("#") and len(word) > 1]


def split_tags(note: str) -> tuple[str, str]:
    """Return the text of a note, and its trailing tags: `("a try", "#best #lr")`.

    A `#12` within the text stays there.
    """
    words = note.split(" ") if note else []
    end = len(words)
    while end and (not words[end - 1] or tags_of(words[end - 1])):
        end -= 1
    return " ".join(words[:end]), " ".join(word for word in words[end:] if word)


def with_text(note: str, text: str) -> str:
    """Return `note` with a new text; keeps its trailing tags, and `text` may add more."""
    words, more = split_tags(text)
    kept = split_tags(note)[1].split()
    present = {tag.casefold() for tag in kept}
    kept += [tag for tag in more.split() if tag.casefold() not in present]
    return " ".join([words, *kept] if words else kept)


def with_tags(note: str, words: str) -> str:
    """Return `note` with the tags that `words` adds (`best`, `#best`) and removes (`-best`).

    Raises:
        InputError: a word is not a tag, or there is none.
    """
    if not words.split():
        raise InputError("The tag is missing.", "Type a word such as best, or -best to remove it.")
    kept = note.split(" ") if note else []
    for tag, removes in _changes(words):
        same = [item for item in kept if item.casefold() == f"#{tag}".casefold()]
        if removes:
            kept = [item for item in kept if item not in same]
        elif not same:
            kept.append(f"#{tag}")
    return " ".join(kept)


def tags_text(runs: str, words: str, key: str = "") -> str:
    """Return the change that `words` made to the tags of `runs`, a description of the runs.

    `key` opens the filter that finds them, where there is such a key.
    """
    changes = list(_changes(words))
    added = " ".join(f"#{tag}" for tag, removes in changes if not removes)
    removed = " ".join(f"#{tag}" for tag, removes in changes if removes)
    hint = f": {key} {added} finds them." if key else "."
    sentences = [f"Tagged {runs} {added}{hint}"] if added else []
    return " ".join([*sentences, *([f"Removed {removed} from {runs}."] if removed else [])])


def _changes(words: str) -> Iterator[tuple[str, bool]]:
    """Yield each tag in `words`, and whether it is removed."""
    for word in words.split():
        tag = word.removeprefix("-").removeprefix("#")
        if not _TAG.fullmatch(tag):
            raise InputError(
                f"{word!r} is not a tag.",
                "A tag is one word of letters, digits, `.`, `+`, `-`, `_`.",
            )
        yield tag, word.startswith("-")
