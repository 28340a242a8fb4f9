"""The virtual environments on a site: building on the login host, listing, removing unused ones."""

import re
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import MOST_WORDS, count, json_of, last_words, lines, short
from lumitui.remote.site.errors import AnswerUnusable, LinkLost, RefusedError
from lumitui.remote.site.run_folder import VENV_SCRIPT
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transport.framing import limited
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Result, Transport

_MOST_SAID = 16 << 20
"""Maximum bytes of a build's output; pip prints about 100 per package."""
_KEPT_LINES = 40
_SHOWN = re.compile(r"^(Collecting|Downloading|Installing|Building|lumitui:) ?\S")
_REASON = re.compile(r"^lumitui: the environment could not be built: (.*)$")


@purpose("send")
def build(transport: Transport, folder: str, seconds: float, report: Callable[[str], None]) -> None:
    """Build the environment of the run in `folder`, unless it exists or another run builds it.

    The build ends with the connection; its partial result is never used. It may take `seconds`, and
    so may waiting for another's. `report` gets each line of progress.

    Raises:
        RefusedError: pip or the site refused.
    """
    end = f"lumitui-end-{secrets.token_hex(8)}"
    script = (
        f"cd {quote(folder)} && bash ./{VENV_SCRIPT} 2>&1; code=$?\n"
        f'printf "\\n%s %s\\n" {end} "$code"'
    )
    output: list[str] = []
    rest, code = b"", ""
    stream = transport.stream(script, stop=lambda: False)
    for chunk in limited(stream, most=_MOST_SAID, seconds=2 * seconds + 60):
        *lines, rest = (rest + chunk).split(b"\n")
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip()
            if line.startswith(f"{end} "):
                code = line.removeprefix(f"{end} ")
            elif line:
                output = [*output[-_KEPT_LINES:], line]
                if _SHOWN.match(line):
                    report(line.removeprefix("lumitui: ")[:MOST_WORDS])
    if not code:
        raise LinkLost(
            "The build of the environment ended without a result.", "Send the job again."
        )
    if code != "0":
        raise RefusedError(
            f"The environment of `venv:` could not be built: {reason_of(output)}.",
            f"Correct `venv:` in the job file; {folder}/venv.log contains pip's full output.",
        )


def reason_of(output: list[str]) -> str:
    """Return why a build failed: pip's last errors, at most two lines."""
    errors = [line.removeprefix("ERROR: ") for line in output if line.startswith("ERROR: ")]
    # pip's last line repeats the package; the one before it names what was searched.
    if errors:
        return "; ".join(dict.fromkeys(text.rstrip(". ") for text in errors[-2:]))[:MOST_WORDS]
    reasons = [match[1] for line in output if (match := _REASON.match(line))]
    return last_words(*reasons[-1:], "\n".join(output), default="it printed nothing")


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

# The link is removed first, so that nobody uses a partly removed environment. `mtime +0` is "older
# than a day": the rest of a killed build; a running one is younger.
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
[ "$dry" = 1 ] ||
  find . -maxdepth 1 \\( -name '.lock-*' -o -name '.try-*' \\) -mtime +0 -exec rm -rf {} +
"""


@dataclass(frozen=True)
class Venv:
    """One environment of a site."""

    name: str
    requirements: tuple[str, ...]
    python: str
    packages: Mapping[str, str]
    """Its installed packages, with the versions."""
    kib: int
    used: float | None
    """Last use by a job or a send, in epoch seconds of the site's clock."""


@dataclass(frozen=True)
class RemovedVenvs:
    """The result of a removal or a dry run."""

    names: tuple[str, ...]
    """`-`: the rest of a killed build."""
    kib: int


@purpose("environments")
def list_venvs(transport: Transport, folder: str) -> list[Venv]:
    """Return the environments in `folder`, most recently used first."""
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
                tuple(line.partition(" --hash=")[0] for line in rest if line.strip()),
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
    """Remove environments in `folder`, or with `dry` only count; return their names and size.

    Those in `keep`, which unfinished runs use, always stay. Without `only`, all that were unused
    for `unused_days` are removed, and the rests of killed builds.

    Raises:
        RefusedError: an environment could not be removed.
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
            raise AnswerUnusable("lumitui cannot read the site's list of environments.", "")
        names.append(match[1])
        total += count(match[2]) or 0
    return RemovedVenvs(tuple(names), total)


def _listed(names: Collection[str]) -> str:
    return f" {' '.join(names)} " if names else " "


def _check(result: Result) -> None:
    if result.code:
        raise RefusedError(
            f"lumitui could not read or remove the environments: {last_words(result.err)}.",
            "Check the folder manually.",
        )
