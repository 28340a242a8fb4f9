"""What `module load` and its relatives leave loaded."""

from collections.abc import Sequence

_LOAD = {"load", "add", "switch", "swap", "try-load"}
_UNLOAD = {"unload", "rm", "del", "delete"}
_OTHER = {
    "use", "unuse", "list", "avail", "spider", "show", "help", "whatis", "key", "save", "restore",
    "reset", "update", "refresh", "is-loaded", "is-avail", "display", "keyword", "overview",
    "disable", "describe", "savelist", "search", "available", "table", "tablelist",
}  # fmt: skip


def loaded(before: Sequence[str], program: str, words: Sequence[str]) -> list[str]:
    """Return the modules after `module WORDS` or `ml WORDS`, where `before` were loaded."""
    words = [word for word in words if not word.startswith("--") and word != "-f"]
    held = list(before)
    if program == "ml" and words and words[0] not in _LOAD | _UNLOAD | _OTHER | {"purge"}:
        words = ["load", *words]
    if not words:
        return held
    verb, names = words[0], words[1:]
    if verb == "purge":
        return []
    if verb in _UNLOAD:
        return _without(held, names)
    if verb not in _LOAD:
        return held
    if verb in ("switch", "swap"):
        held = _without(held, names[:1]) if len(names) > 1 else _without(held, names)
        names = names[-1:]
    gone = [name[1:] for name in names if name.startswith("-")]
    new = [name for name in names if not name.startswith("-")]
    held = _without(held, gone)
    return [*(each for each in held if each not in new), *new]


def _without(held: list[str], names: Sequence[str]) -> list[str]:
    return [
        each
        for each in held
        if not any(each == name or each.split("/")[0] == name for name in names)
    ]
