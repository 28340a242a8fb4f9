"""Creating a run's folder on a site in one request: files, code, links and checkpoints."""

import gzip
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lumitui.remote.site.answer_fields import MOST_WORDS, last_words
from lumitui.remote.site.errors import RefusedError
from lumitui.remote.site.run_folder import (
    CHECKPOINTS,
    CODE,
    RECORD,
    RECORD_FROM_SCRATCH,
    STAGE,
    preparing_seconds,
)
from lumitui.remote.site.shell_text import REFLINK, quote
from lumitui.remote.transfer.contents.pieces import END, file
from lumitui.remote.transfer.snapshots.once_mark import Once, already_sent, once_script
from lumitui.remote.transfer.snapshots.snapshot_store import copy_script
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Result, Transport


@dataclass(frozen=True)
class PlacedFile:
    """One small file in a run's folder."""

    name: str
    text: str
    mode: int = 0o600


@dataclass(frozen=True)
class Plan:
    """The contents of a run's folder."""

    folder: str
    """Its absolute path on the site; must not exist yet."""
    files: Sequence[PlacedFile]
    snapshot: str
    """Path of the snapshot to copy for the run."""
    links: Mapping[str, str]
    """Links below the code: name to target."""
    checkpoints_from: str | None
    """Folder of the run whose checkpoints to copy; then `files` includes RECORD_FROM_SCRATCH."""
    needs_checkpoints: bool
    """Whether missing checkpoints are an error."""
    staged: Mapping[str, str] = field(default_factory=dict)
    """Staged items of the run: name to path on the site."""
    staged_from: str | None = None
    """Folder of the run whose staged items it shares; None: `staged` has them."""
    code_from: str = ""
    """Folder of an earlier run with the same code, for the case without a snapshot."""
    once: Once | None = None
    """Unique identity of the run; None: it may be sent repeatedly."""


class SnapshotGone(RefusedError):
    """The snapshot is no longer on the site, or is damaged."""


@purpose("send")
def require_inherited(transport: Transport, plan: Plan) -> None:
    """Check that the site still has what the run of `plan` inherits; only `prepare` finds damage.

    Raises:
        RefusedError: its code, needed checkpoints or staged data are missing.
    """
    lines = []
    if plan.code_from:
        own = f"cd {quote(plan.code_from)} && ls -d {CODE} .{CODE}.sums.*"
        there = f"[ -d {quote(plan.snapshot)} ] || ({own}) >/dev/null 2>&1"
        lines.append(f"{there} || {{ echo no-snapshot; exit 4; }}")
    if plan.checkpoints_from is not None and plan.needs_checkpoints:
        there = _has_checkpoints(plan.checkpoints_from)
        lines.append(f"{there} || {{ {_NO_CHECKPOINTS}; }}")
    if plan.staged_from is not None:
        lines.append(_whole_stage(quote(f"{plan.staged_from}/{STAGE}")))
    if lines:
        _refuse_failure(transport.run("\n".join(lines)), plan)


@purpose("send")
def prepare(transport: Transport, plan: Plan) -> bool:
    """Create the folder of `plan`; return whether checkpoints were copied.

    Removes a folder that could not be completed.

    Raises:
        SnapshotGone: the snapshot is missing or damaged, and no earlier run's copy is complete.
        AlreadySent: another laptop has sent this run.
        RefusedError: the checkpoints are missing, or the disk refused.
    """
    limit = preparing_seconds(copies_checkpoints=plan.checkpoints_from is not None)
    result = transport.run(_script(plan), stdin=_packed(plan.files), timeout=limit)
    _refuse_failure(result, plan)
    return "continues" in result.text.split()


def _refuse_failure(result: Result, plan: Plan) -> None:
    """Raise the error of a request that failed."""
    if result.code in (4, 5) and "-snapshot" in result.text:
        gone = "no longer on the site" if result.code == 4 else "no longer complete on the site"
        raise SnapshotGone(
            f"The code of that run is {gone}.",
            "Resubmit with `--code current` (in the TUI: `ctrl+o`).",
        )
    if result.code == 8 and "sent-already" in result.text:
        raise already_sent(result.text)
    if result.code == 3 and "no-checkpoints" in result.text:
        raise RefusedError(
            f"{plan.checkpoints_from} has no checkpoints.", "Resubmit with `--from scratch`."
        )
    if result.code == 6 and "staged-gone" in result.text:
        name = result.text.partition("staged-gone")[2].strip()[:40]
        raise RefusedError(
            f"The staged data {name} is no longer on the site.",
            "Resubmit with `--code current`, which stages it again.",
        )
    if result.code == 7 and "link-taken" in result.text:
        name = result.text.partition("link-taken")[2].strip()[:MOST_WORDS]
        raise RefusedError(
            f"The path of the link {name} is taken: the code has a file or folder with that path.",
            "Choose another path for the link in `links:` or `stage:`, or send the current code: "
            "`--code current`.",
        )
    if result.code:
        words = last_words(result.err, result.out, default=f"exit status {result.code}")
        raise RefusedError(
            f"lumitui could not create the run's folder on the site: {words}.",
            "Check the site's disk: `lumitui site check` shows space and quota, and `lumitui site "
            "prune` removes old code.",
        )


def _packed(files: Sequence[PlacedFile]) -> bytes:
    """Return `files` as one compressed tar."""
    pieces, now = list[bytes](), int(time.time())
    for one in files:
        # Keeps bytes of a secret that are not UTF-8.
        data = one.text.encode("utf-8", "surrogateescape")
        pieces += file(one.name, [data], len(data), one.mode, now)
    return gzip.compress(b"".join([*pieces, END]))


def _script(plan: Plan) -> str:
    folder = quote(plan.folder)
    lines = [
        "set -e",
        "umask 077",
        f"mkdir -p {quote(plan.folder.rpartition('/')[0])}",
        f"mkdir -m 700 {folder}",  # a parent's default ACL overrides the umask
        "made=",
        "unmark() { :; }",
        f"remove() {{ unmark; chmod -R u+w {folder}; cd / && rm -rf {folder}; }}",
        'undo() { [ -n "$made" ] || remove; }',
        "trap undo EXIT; trap 'exit 74' HUP INT TERM PIPE",
        f"cd {folder}",
        "tar -xzmf -",  # touch the files, because sites delete old scratch files by age
    ]
    if plan.once is not None:
        lines.append(once_script(plan.once))
    lines += _staged_lines(plan)
    lines.append(copy_script(plan.snapshot, f"{plan.folder}/{CODE}", plan.code_from))
    lines += _link_lines(plan.links)
    if plan.checkpoints_from is not None:
        lines.append(_checkpoints_script(plan.checkpoints_from, needed=plan.needs_checkpoints))
    return "\n".join([*lines, "made=yes"])


def _link_lines(links: Mapping[str, str]) -> list[str]:
    lines = []
    for name, target in links.items():
        path = f"{CODE}/{name.rstrip('/')}"
        refuse = f"{{ printf '%s\\n' {quote(f'link-taken {name}')}; exit 7; }}"
        parts = path.split("/")
        above = [quote("/".join(parts[:number])) for number in range(2, len(parts))]
        lines += [
            *(f"[ ! -e {one} ] || [ -d {one} ] || {refuse}" for one in above),
            f"mkdir -p {quote(path.rpartition('/')[0])}",
            # ln would put the link into an existing folder.
            f"[ ! -e {quote(path)} ] && [ ! -L {quote(path)} ] || {refuse}",
            f"ln -s -- {quote(target)} {quote(path)}",
        ]
    return lines


def _staged_lines(plan: Plan) -> list[str]:
    lines = []
    if plan.staged_from is not None:
        source = quote(f"{plan.staged_from}/{STAGE}")
        lines += [f"[ ! -d {source} ] || cp -PR {source} {STAGE}"]
    elif plan.staged:
        lines += [f"mkdir {STAGE}"]
        lines += [
            f"ln -s -- {quote(place)} {quote(f'{STAGE}/{name}')}"
            for name, place in plan.staged.items()
        ]
    if lines:
        lines.append(_whole_stage(STAGE))
    return lines


def _whole_stage(folder: str) -> str:
    """Return shell code that fails if a staged item, a link in `folder`, is gone."""
    gone = 'echo "staged-gone ${l##*/}"; exit 6'
    return f'for l in {folder}/*; do [ ! -L "$l" ] || [ -e "$l" ] || {{ {gone}; }}; done'


_NO_CHECKPOINTS = "echo no-checkpoints; exit 3"


def _has_checkpoints(folder: str) -> str:
    """Return the shell test for checkpoints in a run's folder."""
    return f'[ -n "$(ls -A {quote(f"{folder}/{CHECKPOINTS}")} 2>/dev/null)" ]'


def _checkpoints_script(source_folder: str, *, needed: bool) -> str:
    source = quote(f"{source_folder}/{CHECKPOINTS}")
    missing = _NO_CHECKPOINTS if needed else f"mv {RECORD_FROM_SCRATCH} {RECORD}"
    copied = f"cp -pR $reflink {source} {CHECKPOINTS}; rm {RECORD_FROM_SCRATCH}; echo continues"
    return f"{REFLINK}\nif {_has_checkpoints(source_folder)}; then {copied}; else {missing}; fi"
