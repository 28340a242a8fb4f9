"""Which lumitui wrote a file: a comment at the end of a YAML file, a key in a JSON object.

An older lumitui names it in its error instead of listing what it does not know.
"""

import re
from functools import cache

MARK = re.compile(r"^# Written by lumitui (\d[\w.+-]*)\.?$", re.MULTILINE)
HINT = "Upgrade lumitui here, with `pip install --upgrade lumitui`."


@cache
def installed() -> str:
    """Return the program's version; `unknown` when it runs without being installed."""
    # Imported late: it takes a third of the time of `lumitui history`.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("lumitui")
    except PackageNotFoundError:
        return "unknown"


def marked(text: str) -> str:
    """Return a YAML file's text with this version in a comment at its end, and no other one."""
    mark = f"# Written by lumitui {installed()}"
    if MARK.search(text):
        return MARK.sub(mark, text)
    return f"{text.rstrip()}\n\n{mark}\n"


def remarked(text: str) -> str:
    """Return the text with this version if lumitui wrote it; a user's own is unchanged."""
    return marked(text) if MARK.search(text) else text


def writer_of(text: str) -> str:
    """Return the version in a YAML file's comment, or ""."""
    match = MARK.search(text)
    return match[1] if match else ""


def is_newer(version: str) -> bool:
    """Return whether a file was written by a later version than this program's."""
    return _numbers(version) > _numbers(installed()) > ()


def newer_words(what: str, version: str) -> str:
    """Return the error for `what`, which a newer version wrote."""
    return (
        f"lumitui {version} wrote {what}, which this version, {installed()}, cannot read "
        "completely."
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
