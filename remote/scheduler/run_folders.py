"""Reading a site's run folders, from which a lost history is rebuilt.

Takes three requests: the user's accounts, the paths of all folders, and the contents of some. For a
colleague, one request returns the newest folders with their contents.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lumitui.remote.site import run_folder
from lumitui.remote.site.answer_fields import count, lines
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

RECORD_BYTES = 1_000_000
"""Maximum bytes of one record. A script and a configuration take about 10 kB."""
PAGE = 50
"""Maximum number of folders per request."""
READING_SECONDS = 120.0
"""Time limit of that request in seconds: 50 folders on a busy Lustre take some seconds."""

_PATH = re.compile(r"/[A-Za-z0-9._-]+/runs/[A-Za-z0-9._-]+")
_LONGEST_NAME = 200
"""Maximum characters of an account: the profile's pattern is not applied to longer text."""
_SIGNS_BYTES = 4096
"""Maximum bytes of one folder's signs; they take about 100."""
_JOB = re.compile(r"[0-9]{1,18}")
_AGE = re.compile(r"-?[0-9]{1,12}")

# At a site with groups named like its accounts, this works without accounting.
_ACCOUNTS = """LC_ALL=C; export LC_ALL
t=; if command -v timeout >/dev/null 2>&1; then t='timeout 20'; fi
$t sacctmgr -n -P show assoc user="$(id -un)" format=account 2>/dev/null
id -Gn | tr ' ' '\\n'
exit 0"""


@dataclass(frozen=True)
class RunFolder:
    """The content of a run's folder."""

    path: str
    record: bytes | None
    """None: there is no record."""
    locked: bool
    """Whether a submission began."""
    job_id: str | None
    """The job's id from its claim, else from the receipt."""
    age: float | None
    """Seconds since its last change, by the site's clock; None if unknown."""
    linked: bool = False
    """Whether the record, a log or the metrics is a link that may point outside the folder."""


@purpose("recover")
def list_accounts(transport: Transport, pattern: str) -> list[str]:
    """Return the accounts that match the profile's `pattern`: Slurm's associations, then groups."""
    return parse_accounts(transport.run(_ACCOUNTS, timeout=60.0).text, pattern)


def parse_accounts(text: str, pattern: str) -> list[str]:
    """Return the distinct names in an answer that match `pattern`."""
    names = (line.partition("|")[0].strip() for line in lines(text))
    short = (name for name in names if 0 < len(name) <= _LONGEST_NAME)
    return list(dict.fromkeys(name for name in short if re.match(pattern, name)))


@purpose("recover")
def list_folders(transport: Transport, work: str) -> list[str] | None:
    """Return the paths of all run folders below the work root `work`; None if it is missing.

    Omits names that no run can have.
    """
    marker = new_marker()
    script = f"""{record_functions(marker)}
cd {quote(work)} 2>/dev/null || exit 0
begin folders
for d in ./*/runs/*/; do d=${{d%/}}; [ -d "$d" ] && [ ! -L "$d" ] && printf '%s\\n' "$d"; done
finish
exit 0"""
    for words, content in parse_records(transport.run(script, timeout=120.0).out, marker):
        if words == ["folders"]:
            # A newline in a name creates lines outside the work root, or paths that do not exist.
            names = [line.removeprefix(".") for line in lines(content) if line.startswith("./")]
            return [work + name for name in names if _PATH.fullmatch(name) and "/../" not in name]
    return None


@purpose("recover")
def read_folders(transport: Transport, paths: Sequence[str]) -> list[RunFolder]:
    """Return the contents of the folders at `paths`, without missing ones."""
    calls = "\n".join(f"one {index} {quote(path)}" for index, path in enumerate(paths))
    answer = _answer(transport, calls)
    return [
        _folder(path, answer.records.get(number), answer.signs[number])
        for number, path in enumerate(paths)
        if number in answer.signs
    ]


@dataclass(frozen=True)
class FoundFolders:
    """The readable part below some work roots."""

    roots: tuple[str, ...]
    """Work roots that exist and can be listed."""
    folders: tuple[RunFolder, ...]
    closed: tuple[str, ...]
    """Run folders that cannot be entered."""


@purpose("history")
def read_newest(transport: Transport, roots: Sequence[str], name: str, most: int) -> FoundFolders:
    """Return the contents of the newest `most` run folders below `roots`, in one request.

    `name` is one run's, or "" for all. Follows no link below a root, because anybody may have
    created it.
    """
    words = " ".join(map(quote, roots))
    answer = _answer(transport, fill(_NEWEST, roots=words, name=quote(name or "*"), most=str(most)))
    paths = {number: path for number, path in answer.paths.items() if _below(path, roots)}
    return FoundFolders(
        tuple(root for root in roots if root in answer.roots),
        tuple(
            _folder(path, answer.records.get(number), answer.signs[number])
            for number, path in paths.items()
            if number in answer.signs
        ),
        tuple(path for number, path in paths.items() if number not in answer.signs),
    )


def _below(path: str, roots: Sequence[str]) -> bool:
    return any(
        path.startswith(root) and _PATH.fullmatch(path[len(root) :]) and "/../" not in path
        for root in roots
    )


# find follows only the roots themselves.
_NEWEST = r"""LC_ALL=C; export LC_ALL
for root in {roots}; do
  if [ -r "$root" ] && [ -x "$root" ]; then begin root; printf '%s\n' "$root"; finish; fi
done
find -H {roots} -mindepth 3 -maxdepth 3 -type d -path '*/runs/*' -name {name} \
  ! -name '*[!A-Za-z0-9._-]*' -exec ls -1dt {} + 2>/dev/null | head -n {most} | {
n=0
while IFS= read -r path; do
  n=$((n + 1))
  begin path $n; printf '%s\n' "$path"; finish
  (one $n "$path")
done; }"""


class _FolderAnswer(NamedTuple):
    """The records of an answer, by folder number."""

    records: dict[int, bytes]
    signs: dict[int, list[str]]
    paths: dict[int, str]
    roots: set[str]


def _answer(transport: Transport, calls: str) -> _FolderAnswer:
    """Run `calls` of `one NUMBER FOLDER`, each of which prints a folder's contents."""
    marker = new_marker()
    # Test -f first, because reading a named pipe would wait for ever.
    script = f"""{record_functions(marker)}
one() {{
cd "$2" 2>/dev/null || return
if [ -f {run_folder.RECORD} ]; then
  begin record $1; head -c {RECORD_BYTES} {run_folder.RECORD}; echo; finish
fi
begin signs $1
for f in *.json *.jsonl attempt-*.out attempt-*.exit; do [ ! -h "$f" ] || echo linked; done
[ ! -d {run_folder.LOCK} ] || echo locked
# Of the folder: the files in it have the laptop's time.
t=$( (stat -c %Y . 2>/dev/null || stat -f %m .) | head -c 12) now=$(date +%s | head -c 12)
case $t:$now in :*|*:|*[!0-9:]*) ;; *) echo "age $((now - t))" ;; esac
[ ! -f {run_folder.RECEIPT} ] || echo "receipt $(head -c 40 {run_folder.RECEIPT})"
c=$(readlink {run_folder.CLAIM} | head -c 40) && [ "$c" ] && echo "claim $c"
echo; finish
}}
{calls}
exit 0"""
    answer = transport.run(script, timeout=READING_SECONDS)
    found = _FolderAnswer({}, {}, {}, set())
    for words, content in parse_records(answer.out, marker):
        match words:
            case ["record", index] if (number := count(index)) is not None:
                found.records[number] = content[:-1][:RECORD_BYTES]
            case ["signs", index] if (number := count(index)) is not None:
                found.signs[number] = list(lines(content[:_SIGNS_BYTES]))
            case ["path", index] if (number := count(index)) is not None:
                found.paths[number] = content[:-1].decode("utf-8", "replace")
            case ["root"]:
                found.roots.add(content[:-1].decode("utf-8", "replace"))
    return found


def _folder(path: str, record: bytes | None, signs: Sequence[str]) -> RunFolder:
    values = dict(line.partition(" ")[::2] for line in signs)
    # A void claim, as left by a cancelled run, names no job.
    ids = [values[name] for name in ("claim", "receipt") if values.get(name, "void") != "void"]
    return RunFolder(
        path=path,
        record=record,
        locked="locked" in values,
        job_id=ids[0] if ids and _JOB.fullmatch(ids[0]) else None,
        age=float(values["age"]) if _AGE.fullmatch(values.get("age", "")) else None,
        linked="linked" in values,
    )
