"""What the answers of a site say against a job, as the adviser's findings. Pure."""

from collections.abc import Iterator

from lumitui.app.explain.words import clock, count
from lumitui.app.survey.inquiry.job_paths import InquiryNeeds, JobPath
from lumitui.app.survey.inquiry.topics import finding
from lumitui.remote.site import walltime
from lumitui.remote.site.finding import Finding
from lumitui.remote.survey.inquiry.answers import OwnJob, PathState
from lumitui.remote.survey.inquiry.ask_inquiry import Answers
from lumitui.remote.survey.slurm_records import Association, Qos

ALMOST = 0.95
"""From this part on a quota is called almost used up: a checkpoint of 7 billion parameters has
some 80 GB, 5 % of a quota of 1.6 TB."""
ALMOST_DISK = 0.98
"""The same of a whole file system, which the job shares with all others there."""
_OF_SLURM = ("cluster-account", "cluster-partition", "cluster-jobs")
"""What explains a refusal of sbatch better than its own words do."""
_BUSY = ("unable to contact", "timed out", "connection refused", "try again", "communication")


def findings(needs: InquiryNeeds, replies: Answers, now: float) -> tuple[Finding, ...]:
    """Return what is wrong with a job by what the site answered at `now`, in epoch seconds."""
    findings_ = [
        *_of_paths(needs, replies),
        *_of_quotas(needs, replies),
        *_of_account(needs, replies),
        *_of_partition(needs, replies),
        *_of_jobs(needs, replies),
        *_of_budget(needs, replies),
    ]
    explained = any(one.rule in _OF_SLURM and one.severity == "error" for one in findings_)
    return (*findings_, *_trial(replies, now, explained=explained), *_silent(replies))


def _trial(replies: Answers, now: float, *, explained: bool) -> Iterator[Finding]:
    tried = replies.trial
    if tried is None:
        return
    if not tried.accepted:
        if not explained:
            yield from _refused(tried.words)
    elif tried.start is not None:
        wait = tried.start - now
        when = f"about {clock(tried.start)[:16]}, in {_about(wait)}" if wait > 90 else "at once"
        yield finding(
            "cluster-start", f"By Slurm's estimate the job would start {when}.",
            "Submit it; the estimate changes with the queue.",
        )  # fmt: skip


def _refused(words: str) -> Iterator[Finding]:
    if any(word in words.lower() for word in _BUSY):
        yield finding("cluster-silent", f"Slurm could not try the script: {words}.",
                       "Ask again in a minute.")  # fmt: skip
        return
    yield finding(
        "cluster-refused", f"sbatch refuses the script: {words}.",
        "Change what it names; `lumitui site show SITE` shows what the partitions allow.",
    )  # fmt: skip


def _about(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes / 60:.0f} h" if minutes < 48 * 60 else f"{minutes / 1440:.0f} days"


def _silent(replies: Answers) -> Iterator[Finding]:
    faults = list(dict.fromkeys(replies.faults.values()))
    if faults:
        more = f" And {len(faults) - 3} more." if faults[3:] else ""
        yield finding(
            "cluster-silent", f"{' '.join(faults[:3])}{more}",
            "Continue: the rest was answered, and none of this is an error in the job.",
        )  # fmt: skip


# -- paths, quotas and disks


def _of_paths(needs: InquiryNeeds, replies: Answers) -> Iterator[Finding]:
    states = {state.path: state for state in replies.paths}
    for place in needs.places:
        if state := states.get(place.path):
            yield from _path(place, state)


def _path(place: JobPath, state: PathState) -> Iterator[Finding]:
    there = state.kind not in ("none", "link")
    if place.role == "image":
        if not there:
            yield finding("cluster-image", f"The image {place.path} is not there{_link(state)}.",
                           "Name one that `lumitui site images SITE` lists.", place.at)  # fmt: skip
        elif not state.readable:
            yield finding("cluster-image", f"You may not read the image {place.path}.",
                           "Ask its owner, or name another one.", place.at)  # fmt: skip
    elif place.role == "bind" and not there:
        yield finding(
            "cluster-bind", f"{place.path} is bound into the container and is not there"
            f"{_link(state)}.", "Make it, or leave out the bind.", place.at)  # fmt: skip
    elif place.role in ("data", "config") and not there and not state.above_writable:
        # What is missing in a folder that the user may write to may be the job's own output.
        yield finding(
            "cluster-path", f"{place.path} is not there{_link(state)}; the nearest folder that is, "
            f"{state.above}, is not yours to write to.",
            "Check the path; `lumitui site data` puts data there.", place.at,
            "error" if place.role == "config" else None)  # fmt: skip
    elif place.role == "output" and (state.kind != "folder" or not state.writable):
        what = "is not there" if not there else "cannot be written to"
        yield finding("cluster-output", f"The log's folder {place.path} {what}.",
                       f"Run `mkdir -p {place.path}` there before sbatch." if not there
                       else "Name a folder of yours.", place.at)  # fmt: skip
    elif place.role == "work" and not state.above_writable:
        yield finding("cluster-output", f"{place.path} cannot be made: {state.above} is not yours "
                       "to write to.", "Check the account; its members alone may write there.",
                       place.at)  # fmt: skip


def _link(state: PathState) -> str:
    return ": it is a link that leads nowhere" if state.kind == "link" else ""


def _of_quotas(needs: InquiryNeeds, replies: Answers) -> Iterator[Finding]:
    covered: set[str] = set()
    for row in replies.quotas:
        inside = [place for place in needs.places if _beneath(place.path, row.folder)]
        covered |= {place.path for place in inside}
        writing = next((place for place in inside if place.role in ("work", "output")), None)
        if not inside:
            continue
        for part, what in ((row.full, "bytes"), (row.files_full, "files")):
            if part >= ALMOST:
                yield finding(
                    "cluster-quota",
                    f"{row.folder} holds {part:.0%} of the {what} that its quota allows"
                    + ("; nothing more can be written." if part >= 1 else "."),
                    "Remove what is not needed, or write the job's results to another area.",
                    (writing or inside[0]).at,
                    "error" if part >= 1 and writing else None,
                )
    yield from _disks(needs, replies, covered)


def _disks(needs: InquiryNeeds, replies: Answers, covered: set[str]) -> Iterator[Finding]:
    writing = {place.path: place for place in needs.places if place.role in ("work", "output")}
    told: set[str] = set()
    for state in replies.paths:
        if state.path not in writing or state.path in covered or state.space is None:
            continue
        for part, what in ((state.space.blocks, "space"), (state.space.files or 0.0, "files")):
            if part >= ALMOST_DISK and state.space.mount not in told:
                told.add(state.space.mount)
                yield finding(
                    "cluster-disk",
                    f"The file system {state.space.mount} is {part:.0%} full of {what}, and the "
                    "job writes there.",
                    "Write elsewhere, or remove what is not needed.",
                    writing[state.path].at,
                )


def _beneath(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


# -- what Slurm says


def _own(needs: InquiryNeeds, replies: Answers) -> list[Association]:
    """Return the associations that a job of this account and partition can use."""
    return [
        one
        for one in replies.associations
        if one.account.lower() == needs.account.lower() and one.partition in ("", needs.partition)
    ]


def _of_account(needs: InquiryNeeds, replies: Answers) -> Iterator[Finding]:
    if not needs.account or needs.account == "none" or not replies.associations:
        return
    accounts = list(dict.fromkeys(one.account for one in replies.associations))
    if needs.account.lower() not in {name.lower() for name in accounts}:
        some = f"{', '.join(accounts[:5])}{' …' if accounts[5:] else ''}"
        yield finding(
            "cluster-account",
            f"You have no account {needs.account} there; Slurm knows {some}.",
            f"Write one of these, or wait until you are a member of {needs.account}.",
            needs.at("account"),
        )
    elif not (own := _own(needs, replies)):
        yield finding(
            "cluster-account",
            f"Your account {needs.account} may not use the partition {needs.partition}.",
            "Name another partition or account.",
            needs.at("partition"),
        )
    elif needs.qos and not any(needs.qos in one.qos for one in own if one.qos):
        names = ", ".join(dict.fromkeys(name for one in own for name in one.qos))
        if names:
            yield finding(
                "cluster-account",
                f"Your account {needs.account} may not use the QOS {needs.qos}; it has {names}.",
                "Name one of these.",
                needs.at("qos"),
            )


def _of_partition(needs: InquiryNeeds, replies: Answers) -> Iterator[Finding]:
    now, name = replies.partition, needs.partition
    if now is None:
        return
    if now.state != "UP":
        closed = now.state in ("DRAIN", "INACTIVE")
        yield finding(
            "cluster-partition",
            f"The partition {name} is {now.state}: "
            + ("sbatch refuses jobs." if closed else "jobs wait until it is UP again."),
            "Name another partition, or wait for the end of the maintenance.",
            needs.at("partition"),
            "error" if closed else "warning",
        )
    if now.seconds and needs.seconds and needs.seconds > now.seconds:
        yield finding(
            "cluster-partition",
            f"The job asks for {walltime.text_of(needs.seconds)}, and Slurm allows "
            f"{walltime.text_of(now.seconds)} in {name}.",
            f"Write {walltime.text_of(now.seconds)} or less, or name another partition.",
            needs.at("time"),
        )
    if now.nodes is not None and needs.nodes and needs.nodes > now.nodes:
        yield finding(
            "cluster-partition",
            f"The job asks for {needs.nodes:,} nodes, and Slurm allows {now.nodes:,} in {name}.",
            f"Write {now.nodes:,} nodes or fewer, or name another partition.",
            needs.at("nodes"),
        )


def _of_jobs(needs: InquiryNeeds, replies: Answers) -> Iterator[Finding]:
    if "jobs" in replies.faults:
        return
    limits: list[tuple[str, Association | Qos, list[OwnJob]]] = []
    for one in _own(needs, replies):
        jobs = [job for job in replies.jobs if job.account.lower() == one.account.lower()]
        limits.append((f"the account {one.account}", one, jobs))
    for quality in replies.qos:
        if needs.qos == quality.name:
            jobs = [job for job in replies.jobs if job.qos == quality.name]
            limits.append((f"the QOS {quality.name}", quality, jobs))
    for what, limit, jobs in limits:
        running = sum(job.state == "RUNNING" for job in jobs)
        if limit.max_submit is not None and len(jobs) >= limit.max_submit:
            yield finding(
                "cluster-jobs",
                f"You have {count(len(jobs), 'job')} in {what}, which allows {limit.max_submit}: "
                "sbatch refuses another.",
                "Wait until one of them ends, or cancel one.",
            )
        elif limit.max_jobs is not None and running >= limit.max_jobs:
            yield finding(
                "cluster-jobs",
                f"In {what} you run {count(running, 'job')}, and {limit.max_jobs} at a time are "
                "allowed: this one waits until one of them ends.",
                "Submit it anyway, or wait.",
                severity="note",
            )


def _of_budget(needs: InquiryNeeds, replies: Answers) -> Iterator[Finding]:
    row = next((b for b in replies.budgets if b.account.lower() == needs.account.lower()), None)
    if row is None:
        return
    if row.left <= 0:
        yield finding(
            "cluster-budget",
            f"{needs.account} has used up its {row.limit or 0:,.0f} {needs.unit}."
            if row.limit
            else f"{needs.account} has no {needs.unit} left.",
            "Ask for more, or name another account: Slurm may refuse the job, or let it wait.",
            needs.at("account"),
        )
    elif needs.price is not None and needs.price > row.left:
        yield finding(
            "cluster-budget",
            f"At its time limit the job is billed {needs.price:,.1f} {needs.unit}, and "
            f"{needs.account} has {row.left:,.0f} left.",
            "Ask for less time or fewer nodes, or name another account.",
            needs.at("account"),
        )
