"""Reading the files of all watched runs in one request: the shell code and the parser."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from lumitui.remote.scheduler.scheduler_protocol import ExitFile, Hang, NewRunFiles, Watch
from lumitui.remote.site import run_folder
from lumitui.remote.site.answer_fields import count, json_of, lines, moment, short, whole
from lumitui.remote.site.gpu_use import gpu_use_of
from lumitui.remote.site.shell_text import quote
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

METRICS_BYTES = 65536
"""Maximum bytes of a run's metrics in one poll."""
REST_BYTES = 1 << 22
"""Maximum bytes of further metrics in one request, for all runs together."""
BEFORE_BYTES = 512
"""Known bytes to read again, which show whether the file is the same."""
SKIPPED_BYTES = 1 << 28
"""Maximum bytes of an overlong line that one request skips at the site. A sparse file may have a
line of a terabyte; the next poll continues in it."""
EXIT_BYTES = 4096
"""Maximum bytes of an exit file; job.sh writes about 150."""
ATTEMPTS_BYTES = 65536
"""Maximum bytes of a run's attempts.jsonl in one poll; an attempt writes about 300."""
HANG_BYTES = 4096
"""Maximum bytes of hung.json; a training run writes about 300."""
GPU_USE_BYTES = 512
"""Maximum bytes of gpu_use.json; a job writes about 130."""
BINDING_BYTES = 4_000_000
"""Maximum bytes of binding.json; the reports of 128 ranks take about 40,000. All runs of a request
share MOST_BINDINGS."""
MOST_BINDINGS = 32 << 20
MOST_ATTEMPT = 999
"""The last attempt to check; Slurm itself requeues a job at most 5 times (max_batch_requeue). A
program may create any number of files with such names."""
_MOST = 10**9  # a rank, and the absolute value of an exit code


@purpose("metrics")
def poll_files(transport: Transport, watches: Sequence[Watch]) -> dict[str, NewRunFiles]:
    """Return the new contents of the folders of `watches`, with as many metrics as fit."""
    marker = new_marker()
    most = max(METRICS_BYTES, REST_BYTES // max(1, len(watches)))
    script = f"{record_functions(marker)}\n{files_script(watches, most, skip=True)}"
    answer = transport.run(script, timeout=run_folder.POLL_SECONDS)
    return parse_files(answer.out, marker, watches, most)


def files_script(watches: Sequence[Watch], most: int = METRICS_BYTES, *, skip: bool = False) -> str:
    """Return sh that prints the new contents of the folders of `watches`; needs `record_functions`.

    With `skip`, the rest of a metrics line too long for an answer stays at the site. One `wc`
    measures all files. A run needs further processes only if its files have changed, and about 70
    bytes of script besides its name (200 runs are polled 120 times an hour). Metrics that `wc`
    cannot measure are not read.
    """
    parents = {watch.folder.rpartition("/")[0]: "" for watch in watches}
    for number, parent in enumerate(parents):
        parents[parent] = f"P{number}"
    folders = []
    for watch in watches:
        parent, _, name = watch.folder.rpartition("/")
        folders.append(f'"${parents[parent]}"/{quote(name)}')
    calls = [
        f"one {index} {folder} {watch.exits} {watch.attempt if watch.has_binding else 0}"
        f" {_offset(watch)} {quote(watch.job_id)}"
        + (f" {watch.attempts_read}" if watch.attempts_read else "")
        for index, (folder, watch) in enumerate(zip(folders, watches, strict=True))
    ]
    return "\n".join(
        [
            *(f"{name}={quote(parent)}" for parent, name in parents.items()),
            _SIZES.format(
                folders=" ".join(folders),
                logs=run_folder.attempt_log("*"),
                metrics=run_folder.METRICS,
                attempts=run_folder.ATTEMPTS,
                claim=run_folder.CLAIM,
            ),
            _ONE.format(
                most=most,
                before=BEFORE_BYTES,
                skip=_SKIP.format(metrics=run_folder.METRICS, most=SKIPPED_BYTES) if skip else "",
                exit_bytes=EXIT_BYTES,
                binding_bytes=_binding_bytes(watches),
                exits=run_folder.attempt_exit("*"),
                binding=run_folder.BINDING,
                hung=run_folder.HUNG,
                hang_bytes=HANG_BYTES,
                gpu_use=run_folder.GPU_USE,
                gpu_use_bytes=GPU_USE_BYTES,
                skipped=SKIPPED_BYTES,
                next_log=run_folder.attempt_log("$(($4 + 1))"),
                metrics=run_folder.METRICS,
                attempts=run_folder.ATTEMPTS,
                attempts_bytes=ATTEMPTS_BYTES,
                claim=run_folder.CLAIM,
                cancelled=run_folder.CANCELLED,
            ),
            *calls,
        ]
    )


# The claims are links to ids, which `wc` cannot measure; `ls` prints their targets.
_SIZES = """\
set --
for d in {folders}; do
  for f in "$d"/{logs} "$d"/{metrics} "$d"/{attempts}; do
    [ ${{#f}} -le $((${{#d}} + 16)) ] && [ -f "$f" ] && set -- "$@" "$f"
  done
  [ -h "$d"/{claim} ] && set -- "$@" "$d"/{claim}
done
sizes=" $([ $# -eq 0 ] || wc -c "$@" 2>/dev/null | head -c $((4200 * $#)))"
claims="$([ $# -eq 0 ] || ls -ld "$@" 2>/dev/null | head -c $((4400 * $#)))
"
begin sizes; printf '%s\\n' "$sizes"; finish"""

# Arguments: index, folder, attempt of the last known exit file, attempt with a known binding or 0,
# known bytes of metrics, job id, known bytes of attempts.jsonl. A requeued job removes the binding
# before it creates its new log. A killed attempt has no exit file, so numbers may be missing.
# Attempt numbers have at most three digits: see MOST_ATTEMPT.
_ONE = """\
one() {{
if ! cd "$2" 2>/dev/null; then begin missing $1; finish; return; fi
case $claims in
*" $2/{claim} -> $6
"*) ;;
*" $2/{claim} -> "*)
  c=${{claims#*" $2/{claim} -> "}}
  begin claim $1; printf '%.40s\\n' "${{c%%
*}}"; finish ;;
esac
if [ -f {cancelled} ]; then begin cancelled $1; finish; fi
for f in {exits}; do
  n=${{f#*-}}; n=${{n%.*}}
  case $n in ''|*[!0-9]*|????*) continue ;; esac
  [ $n -gt $3 ] || continue
  begin exit $1 $n; head -c {exit_bytes} $f; echo; finish
done
if [ -f {binding} ] && {{ [ $4 = 0 ] || [ -f {next_log} ]; }}; then
  begin binding $1; head -c {binding_bytes} {binding}; echo; finish
fi
case $sizes in
*[!0-9]"${{7:-0}} $2/{attempts}"*) ;;
*[0-9]" $2/{attempts}"*)
  begin attempts $1
  tail -c +$((${{7:-0}} + 1)) {attempts} | head -c {attempts_bytes}
  echo; finish ;;
esac
if [ -f {hung} ]; then begin hung $1; head -c {hang_bytes} {hung}; echo; finish; fi
if [ -f {gpu_use} ]; then begin gpus $1; head -c {gpu_use_bytes} {gpu_use}; echo; finish; fi
case $sizes in *[!0-9]"$5 $2/{metrics}"*) return ;; *[0-9]" $2/{metrics}"*) ;; *) return ;; esac
if [ -s {metrics} ]; then
  b=$(($5 > {before} ? {before} : $5)) k=0{skip}
  begin metrics $1 $k
  if [ $k -eq 0 ]; then tail -c +$(($5 - b + 1)) {metrics} | head -c $((b + {most}))
  else
    tail -c +$(($5 - b + 1)) {metrics} | head -c $b
    [ $k -ge {skipped} ] || tail -c +$(($5 + k + 1)) {metrics} | head -c {most}
  fi
  echo; finish
fi
}}"""

# The known bytes end within a line; $k is the length of its rest.
_SKIP = """
  # Its last byte may be a NUL, which no variable holds.
  [ $b -eq 0 ] || [ $(($(tail -c +$5 {metrics} | head -c 1 | wc -l))) -eq 1 ] ||
    k=$(($(tail -c +$(($5 + 1)) {metrics} | head -c {most} | head -n 1 | wc -c)))"""


def _binding_bytes(watches: Sequence[Watch]) -> int:
    return min(BINDING_BYTES, MOST_BINDINGS // max(1, len(watches)))


def parse_files(
    output: bytes, marker: str, watches: Sequence[Watch], most: int = METRICS_BYTES
) -> dict[str, NewRunFiles]:
    """Return the output of `files_script`, by run.

    Raises:
        AnswerUnusable: there are more records or lines than a site can have.
    """
    found = [NewRunFiles() for _ in watches]
    exits: list[dict[int, ExitFile]] = [{} for _ in watches]
    sizes: dict[str, dict[int, int]] = {}
    lengths: dict[str, int] = {}
    for words, content in parse_records(output, marker):
        match words:
            case ["sizes"]:
                sizes, lengths = _sizes(content, {watch.folder for watch in watches})
            case [kind, index, *more] if (place := count(index)) is not None:
                if place >= len(watches):
                    continue
                news, watch = found[place], watches[place]
                match kind, more:
                    case "exit", [attempt] if 0 < (number := count(attempt) or 0) <= MOST_ATTEMPT:
                        if item := parse_exit(content, number):
                            exits[place][number] = item
                    case "binding", []:
                        text = content[: _binding_bytes(watches) + 1].decode("utf-8", "replace")
                        news = replace(news, binding=text.strip())
                    case "attempts", []:
                        told = content[:ATTEMPTS_BYTES]
                        whole_lines = told[: told.rfind(b"\n", 0, len(content) - 1) + 1]
                        news = replace(news, attempts=whole_lines)
                    case "hung", []:
                        news = replace(news, hang=parse_hang(content))
                    case "gpus", []:
                        use = gpu_use_of(json_of(content, most=2 * GPU_USE_BYTES))
                        news = replace(news, gpu_use=use)
                    case "metrics", _:
                        skipped = (count(more[0]) if more else None) or 0
                        size = lengths.get(watch.folder)
                        news = _with_metrics(
                            news, content[:-1], watch, most=most, skipped=skipped, size=size
                        )
                    case "cancelled", []:
                        news = replace(news, cancelled=True)
                    case "missing", []:
                        news = replace(news, missing=True)
                    case "claim", []:
                        news = replace(news, claim=_claim(content))
                found[place] = news
    return {
        watch.run: replace(
            news,
            log_sizes=sizes.get(watch.folder, {}),
            exits=tuple(known[number] for number in sorted(known)),
        )
        for watch, news, known in zip(watches, found, exits, strict=True)
    }


def _claim(content: bytes) -> str:
    """Return the id of the job with the claim; empty if there is no claim or it is void."""
    job_id = content[:40].decode("utf-8", "replace").strip()
    return job_id if count(job_id) is not None else ""


def _with_metrics(
    news: NewRunFiles, content: bytes, watch: Watch, *, most: int, skipped: int, size: int | None
) -> NewRunFiles:
    """Return `news` with the metrics in an answer, which begin before the known end of `watch`.

    The known bytes end with a whole line, unless the start of an overlong line was skipped. A file
    that is shorter, or has no newline there, is another file. It counts as shorter only if `wc`
    reports its `size`: if `wc`, `tail` or `head` fail, fewer bytes arrive than the file has.
    """
    offset = _offset(watch)
    overlap = min(offset, BEFORE_BYTES)
    if len(content) < overlap and (size is None or size >= offset):
        return news
    before, body = content[:overlap], content[overlap : overlap + most]
    may_be_within = offset == 0 or (b"\n" not in before and offset >= min(most, METRICS_BYTES))
    if len(before) < overlap or not (before.endswith(b"\n") or may_be_within):
        return replace(news, metrics_anew=True)
    # An incomplete line is left to the next request.
    whole = body[: body.rfind(b"\n") + 1]
    full = len(body) >= most
    last = before.splitlines()
    is_whole = before.endswith(b"\n") and (len(last) > 1 or offset <= BEFORE_BYTES)
    return replace(
        news,
        # A line longer than a whole answer would be sent for ever, so it is skipped.
        metrics=whole or (body if full else b""),
        more_metrics=full,
        metrics_skipped=skipped if skipped <= SKIPPED_BYTES else 0,
        metrics_after=last[-1] if is_whole else None,
    )


def _offset(watch: Watch) -> int:
    return 0 if watch.anew else watch.metrics_offset


def _sizes(
    content: bytes, folders: Collection[str]
) -> tuple[dict[str, dict[int, int]], dict[str, int]]:
    """Return the sizes of each folder's logs by attempt, and of its metrics."""
    logs: dict[str, dict[int, int]] = {}
    metrics: dict[str, int] = {}
    for line in lines(content):
        text, _, path = line.strip().partition(" ")
        folder, _, name = path.strip().rpartition("/")
        number, size = run_folder.attempt_of_log(name), count(text)
        if folder not in folders or size is None:
            continue
        if name == run_folder.METRICS:
            metrics[folder] = size
        elif number is not None and 0 < number <= MOST_ATTEMPT:
            logs.setdefault(folder, {})[number] = size
    return logs, metrics


def parse_exit(content: bytes, attempt: int) -> ExitFile | None:
    """Return an exit file; None if another program wrote it (job.sh renames a complete one)."""
    data = json_of(content, most=2 * EXIT_BYTES)
    if not isinstance(data, dict) or not {"rc", "rank", "ended", "job"} <= data.keys():
        return None
    rc, rank = whole(data["rc"], -_MOST, _MOST), whole(data["rank"], 0, _MOST)
    ended = moment(data["ended"])
    if rc is None or ended is None or (rank is None and data["rank"] is not None):
        return None
    return ExitFile(
        attempt=attempt,
        rc=rc,
        rank=rank,
        ended=ended,
        job_id=short(data["job"], 40),
        started=moment(data.get("started")),
        oom=data.get("oom") is True,
    )


def parse_hang(content: bytes) -> Hang | None:
    """Return the content of hung.json; None if another program wrote it."""
    data = json_of(content, most=2 * HANG_BYTES)
    if not isinstance(data, dict) or not isinstance(data.get("sentence"), str):
        return None
    return Hang(" ".join(short(data["sentence"], 400).split()), moment(data.get("time")))
