"""The adviser's findings on a job, from a site's answers. Pure."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from lumitui.app.explain.words import clock, count, number
from lumitui.app.survey.inquiry.job_paths import InquiryNeeds, JobPath
from lumitui.app.survey.inquiry.topics import finding
from lumitui.remote.site import walltime
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.source_position import Position
from lumitui.remote.survey.ask_inquiry import Answers, OwnJob, PathState
from lumitui.remote.survey.slurm_records import Association, Qos

ALMOST = 0.95
"""The used part from which a quota counts as almost used up: a checkpoint of 7 billion parameters
has some 80 GB, 5 % of a quota of 1.6 TB."""
ALMOST_DISK = 0.98
"""The same for a whole file system, shared with other jobs."""
_OF_SLURM = ("cluster-account", "cluster-partition", "cluster-jobs")
"""Rules that explain sbatch's refusal better than its own message."""
_BUSY = ("unable to contact", "timed out", "connection refused", "try again", "communication")


def findings(
    needs: InquiryNeeds, replies: Answers, now: float, site: str = "SITE"
) -> tuple[Finding, ...]:
    """Return the findings from the answers of `site` at `now`, in epoch seconds."""
    findings_ = [
        *_of_paths(needs, replies),
        *_of_environment(needs, replies),
        *_of_quotas(needs, replies),
        *_of_account(needs, replies),
        *_of_partition(needs, replies),
        *_of_jobs(needs, replies),
        *_of_budget(needs, replies),
    ]
    explained = any(one.rule in _OF_SLURM and one.severity == "error" for one in findings_)
    every = (*findings_, *_trial(replies, now, explained=explained), *_silent(replies))
    # The fixes' commands name the site.
    return tuple(replace(one, do=re.sub(r"\bSITE\b", site, one.do)) for one in every)


def _trial(replies: Answers, now: float, *, explained: bool) -> Iterator[Finding]:
    trial = replies.trial
    if trial is None:
        return
    if not trial.accepted and any(word in trial.words.lower() for word in _BUSY):
        if not explained:
            yield finding("cluster-silent", f"Slurm could not test the script: {trial.words}.",
                           "Try again in a minute.")  # fmt: skip
    elif not trial.accepted:
        if not explained:
            yield finding(
                "cluster-refused", f"sbatch refuses the script: {trial.words}.",
                "Correct it; `lumitui site show SITE` shows the partitions' limits.",
            )  # fmt: skip
    elif trial.start is not None:
        wait = trial.start - now
        when = f"about {clock(trial.start)[:16]}, in {_about(wait)}" if wait > 90 else "at once"
        yield finding(
            "cluster-start", f"Slurm estimates that the job would start {when}.",
            "Submit it; the estimate changes with the queue.",
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
            "Continue: the other checks ran, and this is not an error in the job.",
        )  # fmt: skip


# -- paths, quotas and disks


def _of_paths(needs: InquiryNeeds, replies: Answers) -> Iterator[Finding]:
    states = {state.path: state for state in replies.paths}
    for place in needs.places:
        if state := states.get(place.path):
            yield from _path(place, state)


def _path(place: JobPath, state: PathState) -> Iterator[Finding]:
    exists = state.kind not in ("none", "link")
    if place.role == "image":
        if not exists:
            yield finding("cluster-image", f"The image {place.path} does not exist{_link(state)}.",
                           "Choose one that `lumitui site images SITE` lists.",
                           place.at)  # fmt: skip
        elif not state.readable:
            yield finding("cluster-image", f"You cannot read the image {place.path}.",
                           "Ask its owner, or choose another image.", place.at)  # fmt: skip
    elif place.role == "wheels" and not exists:
        yield finding("cluster-environment", f"The folder of wheels {place.path} does not exist"
                      f"{_link(state)}.", "Create it there, or correct `venv: {wheels: …}`.",
                      place.at, "error")  # fmt: skip
    elif place.role == "bind" and not exists:
        yield finding(
            "cluster-bind", f"{place.path}, which the container binds, does not exist"
            f"{_link(state)}.", "Create it, or remove the bind.", place.at)  # fmt: skip
    elif place.role == "input" and not exists:
        yield finding(
            "cluster-path", f"{place.path} does not exist{_link(state)}.",
            "Check the path; `stage:` in a job file uploads data.", place.at)  # fmt: skip
    elif place.role in ("data", "config") and not exists and not state.above_writable:
        # In a folder that the user may write to, a missing path may be the job's own output.
        yield finding(
            "cluster-path", f"{place.path} does not exist{_link(state)}; you cannot write to the "
                f"nearest existing folder, {state.above}.",
            "Check the path; `stage:` in a job file uploads data.", place.at,
            "error" if place.role == "config" else None)  # fmt: skip
    elif place.role == "output" and (state.kind != "folder" or not state.writable):
        what = "is not writable" if exists else "does not exist"
        yield finding("cluster-output", f"The log's folder {place.path} {what}.",
                       "Choose one of your own folders." if exists
                       else f"Run `mkdir -p {place.path}` there before sbatch.",
                       place.at)  # fmt: skip
    elif place.role == "work" and not state.above_writable:
        yield finding("cluster-output", f"You cannot create {place.path}, because you cannot "
                      f"write to {state.above}.",
                      "Check the account: only its members can write to its folders.",
                       place.at)  # fmt: skip


def _of_environment(needs: InquiryNeeds, replies: Answers) -> Iterator[Finding]:
    found = replies.environment
    if found and found.failed.startswith("lumitui_activate "):
        yield finding(
            "cluster-environment",
            f"`activate:` fails on the login node: {found.words}.",
            "Check the folder or the name, and load the module that has conda with `modules:`.",
            Position(field="activate"),
            "error",
        )
    elif found and found.failed:
        yield finding(
            "cluster-environment",
            f"`{found.failed}` fails on the login node"
            + (f": {found.words}" if found.words else ""),
            "Choose modules that `module avail` lists on the site.",
            Position(field="modules"),
        )
    elif found and needs.python and not found.python:
        yield finding(
            "cluster-environment",
            f"The job's Python, {needs.python}, does not start on the login node.",
            "Check `python:`, or load a module that has it: `modules: [...]`.",
            Position(field="python"),
            "error",
        )
    elif found and needs.python and needs.torch and not found.torch:
        yield finding(
            "cluster-environment",
            f"The job's Python, {needs.python}, has no torch.",
            "Install it there, or use an environment that has it: `activate: FOLDER`.",
            Position(field="python"),
        )
    version = needs.python_version or (found.python if found else "")
    if version and not _suits(version, needs.python_bound):
        yield finding(
            "cluster-environment",
            f"The job's Python is {version}, but `venv:` requires {needs.python_bound}.",
            "Choose another image or module, or widen `requires-python` and lock again.",
            Position(field="venv"),
            "error",
        )


def _suits(version: str, bound: str) -> bool:
    """Return whether a Python like `3.11` may be in a bound like `>=3.10,<3.13`."""
    own = tuple(map(int, version.split(".")))
    for sign, text, patch in re.findall(r"(>=|<=?)\s*(\d+\.\d+)((?:\.\d+)*)", bound):
        other = tuple(map(int, text.split(".")))
        # `<3.13` leaves 3.13 out; `<3.13.5` does not.
        left_out = sign == "<" and own == other and not patch.strip(".0")
        if left_out or (own < other if sign == ">=" else own > other):
            return False
    return True


def _link(state: PathState) -> str:
    return ": it is a broken link" if state.kind == "link" else ""


def _of_quotas(needs: InquiryNeeds, replies: Answers) -> Iterator[Finding]:
    covered: set[str] = set()
    for row in replies.quotas:
        folder = f"{row.folder.rstrip('/')}/"
        inside = [place for place in needs.places if f"{place.path}/".startswith(folder)]
        covered |= {place.path for place in inside}
        writing = next((place for place in inside if place.role in ("work", "output")), None)
        if not inside:
            continue
        for part, what in ((row.full, "bytes"), (row.files_full, "files")):
            if part >= ALMOST:
                yield finding(
                    "cluster-quota",
                    f"{row.folder} uses {part:.0%} of its quota of {what}"
                    + ("; writing there fails." if part >= 1 else "."),
                    "Remove unneeded files, or write the job's results to another file system.",
                    (writing or inside[0]).at,
                    "error" if part >= 1 and writing else None,
                )
    yield from _disks(needs, replies, covered)


def _disks(needs: InquiryNeeds, replies: Answers, covered: set[str]) -> Iterator[Finding]:
    writing = {place.path: place for place in needs.places if place.role in ("work", "output")}
    reported: set[str] = set()
    for state in replies.paths:
        if state.path not in writing or state.path in covered or state.space is None:
            continue
        for part, what in ((state.space.blocks, "space"), (state.space.files or 0.0, "files")):
            if part >= ALMOST_DISK and state.space.mount not in reported:
                reported.add(state.space.mount)
                yield finding(
                    "cluster-disk",
                    f"The file system {state.space.mount}, to which the job writes, uses "
                    f"{part:.0%} of its {what}.",
                    "Write elsewhere, or remove unneeded files.",
                    writing[state.path].at,
                )


# -- Slurm's limits


def _own(needs: InquiryNeeds, replies: Answers) -> list[Association]:
    """Return the associations for the job's account and partition."""
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
            f"You have no account {needs.account} there; Slurm lists {some}.",
            f"Use one of these, or wait until you are a member of {needs.account}.",
            needs.at("account"),
        )
    elif not (own := _own(needs, replies)):
        yield finding(
            "cluster-account",
            f"Your account {needs.account} may not use the partition {needs.partition}.",
            "Use another partition or account.",
            needs.at("partition"),
        )
    elif needs.qos and not any(needs.qos in one.qos for one in own if one.qos):
        names = ", ".join(dict.fromkeys(name for one in own for name in one.qos))
        if names:
            yield finding(
                "cluster-account",
                f"Your account {needs.account} may not use the QOS {needs.qos}; it has {names}.",
                "Use one of these.",
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
            + ("sbatch refuses jobs." if closed else "jobs wait until it is UP."),
            "Use another partition, or wait until the maintenance is over.",
            needs.at("partition"),
            "error" if closed else "warning",
        )
    if now.seconds and needs.seconds and needs.seconds > now.seconds:
        yield finding(
            "cluster-partition",
            f"The job requests {walltime.text_of(needs.seconds)}, but Slurm allows "
            f"{walltime.text_of(now.seconds)} in {name}.",
            f"Request at most {walltime.text_of(now.seconds)}, or use another partition.",
            needs.at("time"),
        )
    if now.nodes is not None and needs.nodes and needs.nodes > now.nodes:
        yield finding(
            "cluster-partition",
            f"The job requests {needs.nodes:,} nodes, but Slurm allows {now.nodes:,} in {name}.",
            f"Request at most {now.nodes:,} nodes, or use another partition.",
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
        if limit.max_submit is not None and len(jobs) + needs.jobs > limit.max_submit:
            rest = "more" if len(jobs) >= limit.max_submit else f"some of the {needs.jobs} runs"
            yield finding(
                "cluster-jobs",
                f"You have {count(len(jobs), 'job')} in {what}, which allows {limit.max_submit}: "
                f"sbatch refuses {rest}.",
                "Wait until some end, cancel some, or send fewer runs."
                if needs.jobs > 1
                else "Wait until one ends, or cancel one.",
            )
        elif limit.max_jobs is not None and running >= limit.max_jobs:
            yield finding(
                "cluster-jobs",
                f"You run {count(running, 'job')} in {what}, which allows {limit.max_jobs} at a "
                "time: this job waits until one ends.",
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
            "Request more from the site, or use another account: Slurm may refuse or delay the "
            "job.",
            needs.at("account"),
        )
    elif needs.price is not None and needs.price > row.left:
        what = "the job costs" if needs.jobs == 1 else f"the {needs.jobs} runs cost"
        yield finding(
            "cluster-budget",
            # Upwards and downwards: rounded, 99.9 hours seem to fit into 99.7.
            f"At the time limit {what} {math.ceil(needs.price * 10) / 10:,.1f} {needs.unit}, but "
            f"{needs.account} has {number(math.floor(row.left * 10) / 10)} left.",
            "Request less time or fewer nodes, or use another account.",
            needs.at("account"),
        )
