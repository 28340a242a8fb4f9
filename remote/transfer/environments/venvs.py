"""The virtual environments on a site: listed, and removed when nobody uses them."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import count, json_of, last_words, lines, short
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Result, Transport

_NAME = r"[0-9a-f]{16}(?:-[0-9]{1,10})?"
_SECONDS = 300.0

_LIST = """\
LC_ALL=C; export LC_ALL
{functions}
cd {folder} 2>/dev/null || exit 0
for link in *; do
  case $link in *.*) continue;; esac
  [ -L "$link" ] && [ -e "$link/done" ] || continue
  used=$(stat -Lc %Y "$link/used" 2>/dev/null) || used=0
  kib=$(du -sk "$link/." 2>/dev/null) || kib=0
  begin venv "$link" "$used" "${kib%%[!0-9]*}"
  head -n 1 "$link/facts.json"; cat "$link/requirements.txt"; echo; finish
done
"""

# A link is removed first, so that nobody finds half of what it led to. `mtime +0` is "older than a
# day": what a killed build left; one that is under way is younger.
_REMOVE = """\
LC_ALL=C; export LC_ALL; umask 077
cd {folder} 2>/dev/null || exit 0
dry={dry}
discard() {
  kib=$(du -sk "$1" 2>/dev/null); echo "$2 ${kib%%[!0-9]*}"
  [ "$dry" = 1 ] || { chmod -R u+w "$1" 2>/dev/null; rm -rf "$1"; } || exit 1
}
for link in *; do
  case $link in *.*|.*) continue;; esac
  [ -L "$link" ] || continue
  case {keep} in *" ${link%%-*} "*) continue;; esac
  case {only} in ' ') [ -z "$(find "$link/used" -mmin -{minutes} 2>/dev/null)" ] || continue;;
    *" $link "*|*" ${link%%-*} "*) ;;
    *) continue;;
  esac
  target=$(readlink "$link") || continue
  case $target in */*|.*|'') continue;; esac
  [ "$dry" = 1 ] || rm -f "$link" || exit 1
  discard "$target" "$link"
done
[ {only} = ' ' ] || exit 0
find . -maxdepth 1 -name '?*.*-*-*' -type d -mtime +0 | while IFS= read -r left; do
  left=${left#./}
  [ "$left" -ef "${left%%.*}" ] || discard "$left" -
done
find . -maxdepth 1 \\( -name '.lock-*' -o -name '.try-*' \\) -mtime +0 -exec rm -rf {} +
"""


@dataclass(frozen=True)
class Venv:
    """One environment of a site."""

    name: str
    requirements: tuple[str, ...]
    python: str
    packages: Mapping[str, str]
    """What was installed into it, with the versions."""
    kib: int
    used: float | None
    """When a job or a send asked for it last, in epoch seconds by the site's clock."""


@dataclass(frozen=True)
class RemovedVenvs:
    """What was removed, or would be."""

    names: tuple[str, ...]
    """`-`: what a killed build had left."""
    kib: int


@purpose("environments")
def list_venvs(transport: Transport, folder: str) -> list[Venv]:
    """Return the environments in `folder`, the one used last first.

    Raises:
        LinkError: the site cannot be reached.
    """
    marker = new_marker()
    script = fill(_LIST, functions=record_functions(marker), folder=quote(folder))
    result = transport.run(script, timeout=_SECONDS)
    _check(result)
    venvs = []
    for record in parse_records(result.out, marker):
        kind, name, used, kib = [*record.words, "", "", "", ""][:4]
        if kind != "venv" or not re.fullmatch(_NAME, name):
            continue
        first, *rest = [*lines(record.content), ""]
        facts = json_of(first)
        facts = facts if isinstance(facts, dict) else {}
        packages = facts.get("packages")
        packages = packages if isinstance(packages, dict) else {}
        venvs.append(
            Venv(
                name,
                tuple(line for line in rest if line.strip()),
                short(facts.get("python"), 40),
                {short(key, 200): short(value, 100) for key, value in packages.items()},
                count(kib) or 0,
                float(moment) if (moment := count(used)) else None,
            )
        )
    return sorted(venvs, key=lambda one: one.used or 0.0, reverse=True)


@purpose("environments")
def remove_venvs(
    transport: Transport,
    folder: str,
    keep: Collection[str],
    *,
    only: Collection[str] = (),
    unused_days: int = 0,
    dry: bool = False,
) -> RemovedVenvs:
    """Remove environments in `folder`; return which, and their size.

    Args:
        transport: To the site.
        folder: Where they are.
        keep: The names of those that unfinished runs use; they stay in any case.
        only: Those to remove; empty: all that were not used for some days, and what killed builds
            left.
        unused_days: For how many days an environment was not used that goes.
        dry: Only count.

    Raises:
        RefusedError: one could not be removed.
        LinkError: the site cannot be reached.
    """
    script = fill(
        _REMOVE,
        folder=quote(folder),
        dry=int(dry),
        keep=quote(_listed(keep)),
        only=quote(_listed(only)),
        minutes=unused_days * 1440,
    )
    result = transport.run(script, timeout=_SECONDS)
    _check(result)
    names, total = [], 0
    for line in lines(result.out):
        match = re.fullmatch(rf"(-|{_NAME}) ([0-9]{{0,15}})", line)
        if match is None:
            raise AnswerUnusable("The site's answer about its environments cannot be read.", "")
        names.append(match[1])
        total += count(match[2]) or 0
    return RemovedVenvs(tuple(names), total)


def _listed(names: Collection[str]) -> str:
    return f" {' '.join(names)} " if names else " "


def _check(result: Result) -> None:
    if result.code:
        raise RefusedError(
            f"The environments could not be read or removed: {last_words(result.err)}.",
            "Check the folder manually.",
        )
