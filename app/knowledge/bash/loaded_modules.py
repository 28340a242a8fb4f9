"""What `module load` and its relatives leave loaded."""

from collections.abc import Sequence
from itertools import dropwhile

_LOAD = {"load", "add", "switch", "swap", "try-load"}
_UNLOAD = {"unload", "rm", "del", "delete"}
_OTHER = {
    "use", "unuse", "list", "avail", "spider", "show", "help", "whatis", "key", "save", "restore",
    "reset", "update", "refresh", "is-loaded", "is-avail", "display", "keyword", "overview",
    "disable", "describe", "savelist", "search", "available", "table", "tablelist",
}  # fmt: skip


def module_call(program: str, words: Sequence[str]) -> tuple[str, list[str]]:
    """Return what `module WORDS` or `ml WORDS` does, and the names it does it with."""
    words = [word for word in words if not word.startswith("--") and word != "-f"]
    if program == "module":
        words = [*dropwhile(lambda word: word.startswith("-"), words)]
    if program == "ml" and words and words[0] not in _LOAD | _UNLOAD | _OTHER | {"purge"}:
        return "load", words
    return "".join(words[:1]), words[1:]


def loaded(before: Sequence[str], program: str, words: Sequence[str]) -> list[str]:
    """Return the modules after `module WORDS` or `ml WORDS`, where `before` were loaded."""
    verb, names = module_call(program, words)
    if verb == "purge":
        return []
    if verb in _UNLOAD:
        return _without(before, names)
    if verb not in _LOAD:
        return [*before]
    gone = [name[1:] for name in names if name.startswith("-")]
    if verb in ("switch", "swap"):
        gone += names[:1]
        names = names[-1:]
    new = [name for name in names if not name.startswith("-")]
    return [*(each for each in _without(before, gone) if each not in new), *new]


def _without(modules: Sequence[str], names: Sequence[str]) -> list[str]:
    return [each for each in modules if not {each, each.split("/")[0]} & {*names}]
