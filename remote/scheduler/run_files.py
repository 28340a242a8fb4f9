"""The files of all watched runs in one request: the sh that prints them, and the parser."""

import json
from collections.abc import Sequence
from typing import TypedDict

from lumitui.remote import run_folder
from lumitui.remote.scheduler.protocol import ExitFile, RunFiles, Watch
from lumitui.remote.transport.fields import count, moment
from lumitui.remote.transport.protocol import Transport
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.shell import quote

METRICS_BYTES = 65536
"""Most bytes of metrics that one poll brings of a run."""
REST_BYTES = 1 << 22
"""Most bytes that a request for the rest of them brings, of all runs together."""
BEFORE_BYTES = 512
"""Bytes before the new ones that are read too: a line shows whether it is the same file."""
_MOST = 10**9  # a rank, and the absolute value of an exit code


def poll_files(transport: Transport, watches: Sequence[Watch]) -> dict[str, RunFiles]:
    """Return what is new in the folders of `watches`, with as many of their metrics as fit.

    Raises:
        LinkError: the site could not be asked.
    """
    marker = new_marker()
    most = max(METRICS_BYTES, REST_BYTES // max(1, len(watches)))
    script = f"{record_functions(marker)}\n{files_script(watches, most)}"
    answer = transport.run(script, timeout=run_folder.POLL_SECONDS)
    return parse_files(answer.out, marker, watches, most)


def files_script(watches: Sequence[Watch], most: int = METRICS_BYTES) -> str:
    """Return sh that prints what is new in the folders of `watches`; it needs `record_functions`.

    One `wc` measures all files. A run costs further processes only when it has news, and some 70
    bytes of script besides its name (200 runs are polled 120 times an hour).
    """
    parents = {watch.folder.rpartition("/")[0]: "" for watch in watches}
    for number, parent in enumerate(parents):
        parents[parent] = f"P{number}"
    folders = []
    for watch in watches:
        parent, _, name = watch.folder.rpartition("/")
        folders.append(f'"${parents[parent]}"/{quote(name)}')
    asked = [
        f"one {index} {folder} {watch.exits} {watch.attempt if watch.has_binding else 0}"
        f" {_offset(watch)}"
        for index, (folder, watch) in enumerate(zip(folders, watches, strict=True))
    ]
    return "\n".join(
        [
            *(f"{name}={quote(parent)}" for parent, name in parents.items()),
            _SIZES.format(
                folders=" ".join(folders),
                logs=run_folder.attempt_log("*"),
                metrics=run_folder.METRICS,
            ),
            _ONE.format(
                most=most,
                before=BEFORE_BYTES,
                exits=run_folder.attempt_exit("*"),
                binding=run_folder.BINDING,
                next_log=run_folder.attempt_log("$(($4 + 1))"),
                metrics=run_folder.METRICS,
            ),
            *asked,
        ]
    )


_SIZES = """\
set --
for d in {folders}; do for f in "$d"/{logs} "$d"/{metrics}; do
  [ -f "$f" ] && set -- "$@" "$f"
done; done
sizes=" $([ $# -eq 0 ] || wc -c "$@" 2>/dev/null)"
begin sizes; printf '%s\\n' "$sizes"; finish"""

# Arguments: index, folder, attempt of the last exit file known, attempt with a known binding or 0,
# known bytes of the metrics. A requeued job removes the binding before it makes its new log. An
# attempt that was killed has no exit file: numbers may be missing in between.
_ONE = """\
one() {{
if ! cd "$2" 2>/dev/null; then begin missing $1; finish; return; fi
for f in {exits}; do
  n=${{f#*-}}; n=${{n%.*}}
  case $n in ''|*[!0-9]*) continue ;; esac
  [ $n -gt $3 ] || continue
  begin exit $1 $n; head -c 4096 $f; echo; finish
done
if [ -f {binding} ] && {{ [ $4 = 0 ] || [ -f {next_log} ]; }}; then
  begin binding $1; head -c 4000000 {binding}; echo; finish
fi
case $sizes in *[!0-9]"$5 $2/{metrics}"*) return ;; esac
if [ -s {metrics} ]; then
  b=$(($5 > {before} ? {before} : $5))
  begin metrics $1; tail -c +$(($5 - b + 1)) {metrics} | head -c $((b + {most}))
  echo; finish
fi
}}"""


def parse_files(
    output: bytes, marker: str, watches: Sequence[Watch], most: int = METRICS_BYTES
) -> dict[str, RunFiles]:
    """Return what `files_script` printed, by run."""
    sizes: dict[str, dict[int, int]] = {}
    exits: dict[int, list[ExitFile]] = {}
    bindings: dict[int, str] = {}
    metrics: dict[int, _Metrics] = {}
    missing: set[int] = set()
    for words, content in parse_records(output, marker):
        match words:
            case ["sizes"]:
                sizes = _sizes(content)
            case ["exit", index, attempt] if count(index) is not None and count(attempt):
                if item := parse_exit(content, int(attempt)):
                    exits.setdefault(int(index), []).append(item)
            case ["binding", index] if count(index) is not None:
                bindings[int(index)] = content.decode("utf-8", "replace").strip()
            case ["metrics", index] if (place := count(index)) is not None:
                if place < len(watches):
                    metrics[place] = _metrics(content[:-1], _offset(watches[place]), most)
            case ["missing", index] if count(index) is not None:
                missing.add(int(index))
            case _:
                pass
    return {
        watch.run: RunFiles(
            log_sizes=sizes.get(watch.folder, {}),
            exits=tuple(sorted(exits.get(index, ()), key=lambda item: item.attempt)),
            binding=bindings.get(index),
            **metrics.get(index, {}),
            missing=index in missing,
        )
        for index, watch in enumerate(watches)
    }


class _Metrics(TypedDict, total=False):
    metrics: bytes
    more_metrics: bool
    metrics_after: bytes
    metrics_anew: bool


def _metrics(content: bytes, offset: int, most: int) -> _Metrics:
    """Return the metrics of an answer from `offset` on; some bytes before it come first.

    What is known ends with a whole line, unless a line was too long for an answer and its beginning
    was skipped. A file that is shorter, or that has no line end there, is another file.
    """
    before, body = content[: min(offset, BEFORE_BYTES)], content[min(offset, BEFORE_BYTES) :]
    may_be_within = offset == 0 or (b"\n" not in before and offset >= min(most, METRICS_BYTES))
    if len(before) < min(offset, BEFORE_BYTES) or not (before.endswith(b"\n") or may_be_within):
        return {"metrics_anew": True}
    # A line that is still being written is left to the next request.
    whole = body[: body.rfind(b"\n") + 1]
    full = len(body) >= most
    # A line longer than a whole answer would come again for ever: it is skipped.
    found: _Metrics = {"metrics": whole or (body if full else b""), "more_metrics": full}
    lines = before.splitlines()
    if before.endswith(b"\n") and (len(lines) > 1 or offset <= BEFORE_BYTES):
        found["metrics_after"] = lines[-1]
    return found


def _offset(watch: Watch) -> int:
    return 0 if watch.anew else watch.metrics_offset


def _sizes(content: bytes) -> dict[str, dict[int, int]]:
    sizes: dict[str, dict[int, int]] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        size, _, path = line.strip().partition(" ")
        folder, _, name = path.strip().rpartition("/")
        number, size_of = run_folder.attempt_of_log(name), count(size)
        if folder and number and size_of is not None:
            sizes.setdefault(folder, {})[number] = size_of
    return sizes


def parse_exit(content: bytes, attempt: int) -> ExitFile | None:
    """Return an exit file; None when the text is another program's (job.sh renames a whole one)."""
    try:
        data = json.loads(content)
        rank, rc, ended = data["rank"], int(data["rc"]), moment(data["ended"])
        rank = None if rank is None else int(rank)
        if ended is None or abs(rc) > _MOST or not 0 <= (rank or 0) <= _MOST:
            return None
        return ExitFile(
            attempt=attempt,
            rc=rc,
            rank=rank,
            ended=ended,
            job_id=str(data["job"])[:40],
            started=moment(data["started"]) if "started" in data else None,
            oom=data.get("oom") is True,
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
