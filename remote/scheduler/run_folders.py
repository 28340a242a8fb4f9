"""The runs' folders of a site, as a lost history is rebuilt from them: the sh, the parsers.

Three requests: the accounts a person has, the names of all folders, and what some of them hold.
Whatever a folder holds stands between lines with a random marker, so that none of it can be
taken for structure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.remote import run_folder
from lumitui.remote.transport.records import parse_records, record_functions
from lumitui.remote.transport.shell import quote

RECORD_BYTES = 1_000_000
"""Of one record at the most: a script and a configuration; they have some 10 kB."""
PAGE = 50
"""Folders a request."""

_NAMES = re.compile(r"/[A-Za-z0-9._-]+/runs/[A-Za-z0-9._-]+")
_JOB = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class Folder:
    """What a run's folder holds."""

    path: str
    record: bytes | None
    """None: there is none."""
    locked: bool
    """Whether a submission was begun."""
    job_id: str | None
    """From the receipt, else from the claim."""
    composed: bool
    """Whether job.sh is there."""


def accounts_script() -> str:
    """Return sh that prints names that may be accounts: Slurm's associations, then the groups.

    A site that names a project's group like its account needs no accounting for this.
    """
    return """LC_ALL=C; export LC_ALL
t=; if command -v timeout >/dev/null 2>&1; then t='timeout 20'; fi
$t sacctmgr -n -P show assoc user="$(id -un)" format=account 2>/dev/null
id -Gn | tr ' ' '\\n'
exit 0"""


def parse_accounts(text: str, pattern: str) -> list[str]:
    """Return the names in the answer that fit the profile's `pattern`, each once."""
    names = (line.partition("|")[0].strip() for line in text.splitlines())
    return list(dict.fromkeys(name for name in names if name and re.match(pattern, name)))


def names_script(marker: str, work: str) -> str:
    """Return sh that prints the paths of all runs' folders below the work root `work`."""
    return f"""{record_functions(marker)}
cd {quote(work)} 2>/dev/null || exit 0
begin names
for d in ./*/runs/*/; do d=${{d%/}}; [ -d "$d" ] && [ ! -L "$d" ] && printf '%s\\n' "$d"; done
end
exit 0"""


def parse_names(output: bytes, marker: str, work: str) -> list[str] | None:
    """Return the paths; None when the work root is not there. Names that no run has are left out.

    A line end in a name makes lines that are not below the work root, or names that are not there.
    """
    for words, content in parse_records(output, marker):
        if words == ["names"]:
            lines = content.decode("utf-8", "replace").splitlines()
            found = [line.removeprefix(".") for line in lines if line.startswith("./")]
            return [work + name for name in found if _NAMES.fullmatch(name) and "/../" not in name]
    return None


def folders_script(marker: str, paths: Sequence[str]) -> str:
    """Return sh that prints the record of each folder and the signs of a submission in it."""
    asked = "\n".join(f"one {index} {quote(path)}" for index, path in enumerate(paths))
    # -f first: reading a named pipe would wait for ever.
    return f"""{record_functions(marker)}
one() {{
cd "$2" 2>/dev/null || return
if [ -f {run_folder.RECORD} ]; then
  begin record $1; head -c {RECORD_BYTES} {run_folder.RECORD}; echo; end
fi
begin signs $1
[ ! -d {run_folder.LOCK} ] || echo locked
[ ! -f {run_folder.JOB_SCRIPT} ] || echo composed
[ ! -f {run_folder.RECEIPT} ] || echo "receipt $(head -c 40 {run_folder.RECEIPT})"
c=$(readlink {run_folder.CLAIM}) && echo "claim $c"
echo; end
}}
{asked}
exit 0"""


def parse_folders(output: bytes, marker: str, paths: Sequence[str]) -> list[Folder]:
    """Return what `folders_script` printed; a folder that has gone is left out."""
    texts: dict[int, bytes] = {}
    signs: dict[int, list[str]] = {}
    for words, content in parse_records(output, marker):
        match words:
            case ["record", index] if index.isdecimal():
                texts[int(index)] = content[:-1]
            case ["signs", index] if index.isdecimal():
                signs[int(index)] = content.decode("utf-8", "replace").splitlines()
            case _:
                pass
    found = []
    for number, path in enumerate(paths):
        if number not in signs:
            continue
        said = dict(line.partition(" ")[::2] for line in signs[number])
        ids = [said.get(name, "") for name in ("receipt", "claim")]
        found.append(
            Folder(
                path=path,
                record=texts.get(number),
                locked="locked" in said,
                job_id=next((text for text in ids if _JOB.fullmatch(text)), None),
                composed="composed" in said,
            )
        )
    return found
