"""Tags of a run: the words of its note that begin with `#`. Pure."""

import re

from lumitui.remote.errors import InputError

_TAG = re.compile(r"[\w.+-]{1,40}")


def tags_of(note: str) -> list[str]:
    """Return the tags in `note` in their order, without their `#`."""
    return [word[1:] for word in note.split(" ") if word.startswith("#") and len(word) > 1]


def with_tags(note: str, words: str) -> str:
    """Return `note` with the tags that `words` adds (`best`, `#best`) and removes (`-best`).

    Raises:
        InputError: a word is no tag, or there is none.
    """
    if not words.split():
        raise InputError("There is no tag.", "Type a word such as best, or -best to remove it.")
    kept = note.split(" ") if note else []
    for word in words.split():
        removes = word.startswith("-")
        tag = word.removeprefix("-").removeprefix("#")
        if not _TAG.fullmatch(tag):
            raise InputError(
                f"{word!r} is no tag.", "A tag is one word of letters, digits, `.`, `+`, `-`, `_`."
            )
        same = [item for item in kept if item.casefold() == f"#{tag}".casefold()]
        if removes:
            kept = [item for item in kept if item not in same]
        elif not same:
            kept.append(f"#{tag}")
    return " ".join(kept)
