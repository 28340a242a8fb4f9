"""The files of a run's folder that fit patterns: their names and hashes, by one request."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.remote.errors import InputError, RefusedError
from lumitui.remote.run_folder import LISTING_SECONDS, METRICS, SECRETS, attempt_log
from lumitui.remote.transport.protocol import Transport
from lumitui.remote.transport.shell import SHA, quote

_MOST_TROUBLES = 5

# Records end with NUL, which no name holds: `DIGEST  NAME` of a whole file, `DIGEST SIZE NAME` of
# a file's first SIZE bytes, and the words that `_listed` reads. sha256sum escapes odd names, so a
# batch with such a name is hashed one file at a time.
_SUMS = (
    SHA
    + r"""
n=$(printf '\nx'); n=${n%x}
first() {
  for f; do
    s=$(wc -c <"$f") && s=$((s)) && d=$(head -c $s "$f" | sha) || { printf 'trouble\0'; continue; }
    printf '%s %d %s\0' "${d%% *}" $s "$f"
  done
}
sums() {
  case $* in
  *\\*|*"$n"*) first "$@" ;;
  *) { sha "$@" || echo trouble; } | tr '\n' '\000' ;;
  esac
}
links() {
  for f; do
    case $(readlink -f "$f") in
    "$top"/*) if [ -f "$f" ]; then sums "$f"; else printf 'link %s\0' "$f"; fi ;;
    *) printf 'link %s\0' "$f" ;;
    esac
  done
}
"""
)
# A link that a pattern itself names is followed to a file anywhere and to a folder inside; a link
# in a folder that is walked through only to a file inside. A file that a run appends to is read up
# to its present size. busybox's find runs no `-exec … +` inside parentheses.
_LIST = """\
code={code}
eval "$code"
cd {folder} || exit 66
top=$(pwd -P); export top
set --
{patterns}
[ $# -eq 0 ] && exit 0
first='first "$@"' sums='sums "$@"' links='links "$@"'
find -H "$@" -type f -name {metrics} -exec sh -c "$code$first" sh {{}} + \\
  -o -type f -name '{logs}' -exec sh -c "$code$first" sh {{}} + \\
  -o -type f ! -name {metrics} ! -name '{logs}' -exec sh -c "$code$sums" sh {{}} + \\
  -o -type l -exec sh -c "$code$links" sh {{}} + || printf 'trouble\\0'
exit 0
"""
_PATTERN = """\
for f in {word}; do
  if [ -d "$f" ]; then
    to=$(cd -P "$f" && pwd -P) || {{ printf 'trouble\\0'; continue; }}
    case $to/ in "$top"/*) ;; *) printf 'link %s\\0' "$f"; continue ;; esac
  elif ! [ -f "$f" ]; then continue; fi
  printf 'fits %d %s\\0' {index} "$f"; set -- "$@" "$f"
done"""


@dataclass(frozen=True)
class Listed:
    """One file of the site."""

    digest: str
    """SHA-256, of the whole file or of its first `size` bytes."""
    size: int | None
    """Bytes; None: the whole file."""


@dataclass(frozen=True)
class Listing:
    """What fits the patterns; see `fetch.FetchOutcome`."""

    files: dict[str, Listed]
    links: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()
    """Files whose names cannot be sent to the site as text."""


def list_files(transport: Transport, folder: str, patterns: Sequence[str]) -> Listing:
    """Return the files below `folder` that fit `patterns`.

    Raises:
        InputError: a pattern is absolute or leaves the folder.
        RefusedError: there is no such folder, or it cannot be entered.
        LinkError: the site could not be asked.
    """
    loops = [
        _PATTERN.format(word=_word(pattern), index=index) for index, pattern in enumerate(patterns)
    ]
    script = _LIST.format(
        code=quote(_SUMS),
        folder=quote(folder),
        patterns="\n".join(loops),
        metrics=METRICS,
        logs=attempt_log("*"),
    )
    return _listed(transport, folder, script, patterns)


def list_again(transport: Transport, folder: str, names: Sequence[str]) -> Listing:
    """Return those of `names` that are still there, each up to the size it has now.

    Raises:
        RefusedError, LinkError: as `list_files`.
    """
    words = " ".join(quote(f"./{name}") for name in names)
    script = f"{_SUMS}\ncd {quote(folder)} || exit 66\nfirst {words}\nexit 0"
    return _listed(transport, folder, script, ())


def _word(pattern: str) -> str:
    """Return `pattern` as a word of the shell in which only `*`, `?` and `[...]` are special."""
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
        raise InputError(
            f"The pattern {pattern!r} leaves the run's folder.",
            "Write it relative to the run, such as checkpoints/*.pt.",
        )
    # In brackets, only characters that no shell reads as special; all other text is quoted.
    parts = re.split(r"(\*|\?|\[!?[\w.,:+@%=-]+\])", pattern, flags=re.ASCII)
    special = ((part if index % 2 else quote(part)) for index, part in enumerate(parts) if part)
    return "./" + "".join(special)


def _listed(transport: Transport, folder: str, script: str, patterns: Sequence[str]) -> Listing:
    result = transport.run(script, timeout=LISTING_SECONDS)
    said = result.err.decode("utf-8", "replace").strip().splitlines()
    if result.code:
        raise RefusedError(
            f"The site could not read {folder}: {said[-1] if said else 'no reason given'}.", ""
        )
    files: dict[str, Listed] = {}
    links, unnamed, trouble = list[str](), list[str](), False
    fits: dict[str, list[str]] = {}
    for record in result.out.split(b"\0")[:-1]:
        head, _, rest = record.decode("utf-8", "surrogateescape").partition(" ")
        if head == "trouble":
            trouble = True
        elif head == "fits":
            index, _, path = rest.partition(" ")
            fits.setdefault(index, []).append(_inside(path))
        elif head == "link":
            links.append(_inside(rest))
        else:
            size, _, path = rest.partition(" ")
            name = _inside(path)
            if not _is_text(name):
                unnamed.append(name)
            elif name != SECRETS:
                files[name] = Listed(head, int(size) if size else None)
    return Listing(
        files,
        tuple(dict.fromkeys(links)),
        tuple(
            pattern
            for index, pattern in enumerate(patterns)
            if not _any_below(fits.get(str(index), ()), (*files, *unnamed))
        ),
        tuple((said or ["no reason given"])[:_MOST_TROUBLES]) if trouble else (),
        tuple(dict.fromkeys(unnamed)),
    )


def _inside(name: str) -> str:
    """Return `name` in its shortest form; RefusedError when it leaves the folder."""
    if not name.startswith("./") or ".." in name.split("/"):
        raise RefusedError(f"The site names a file outside the run's folder: {name!r}.", "")
    return posixpath.normpath(name)


def _any_below(matches: Sequence[str], names: Sequence[str]) -> bool:
    """Whether one of `names` is one of `matches` or below one; an empty folder has none."""
    here, folders = set(matches), tuple("" if match == "." else f"{match}/" for match in matches)
    return any(name in here or name.startswith(folders) for name in names)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
