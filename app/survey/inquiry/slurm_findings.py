"""What the answers of Slurm say against a job: account, partition, limits, budget. Pure."""

from collections.abc import Iterator

from lumitui.app.explain.words import count
from lumitui.app.knowledge.rule import Finding
from lumitui.app.survey.inquiry.job_paths import Wanted
from lumitui.app.survey.inquiry.topics import finding
from lumitui.remote.site import walltime
from lumitui.remote.survey.inquiry.ask_inquiry import Answers
from lumitui.remote.survey.slurm_records import Association


def _own(wanted: Wanted, found: Answers) -> list[Association]:
    """Return the associations that a job of this account and partition can use."""
    return [
        one
        for one in found.associations
        if one.account.lower() == wanted.account.lower() and one.partition in ("", wanted.partition)
    ]


def account_findings(wanted: Wanted, found: Answers) -> Iterator[Finding]:
    """Yield that the person may not use the account, there or with this QOS."""
    if not wanted.account or wanted.account == "none" or not found.associations:
        return
    known = list(dict.fromkeys(one.account for one in found.associations))
    if wanted.account.lower() not in {name.lower() for name in known}:
        some = f"{', '.join(known[:5])}{' …' if known[5:] else ''}"
        yield finding(
            "cluster-account",
            f"You have no account {wanted.account} there; Slurm knows {some}.",
            f"Write one of these, or wait until you are a member of {wanted.account}.",
            wanted.at("account"),
        )
    elif not (own := _own(wanted, found)):
        yield finding(
            "cluster-account",
            f"Your account {wanted.account} may not use the partition {wanted.partition}.",
            "Name another partition or account.",
            wanted.at("partition"),
        )
    elif wanted.qos and not any(wanted.qos in one.qos for one in own if one.qos):
        names = ", ".join(dict.fromkeys(name for one in own for name in one.qos))
        if names:
            yield finding(
                "cluster-account",
                f"Your account {wanted.account} may not use the QOS {wanted.qos}; it has {names}.",
                "Name one of these.",
                wanted.at("qos"),
            )


def partition_findings(wanted: Wanted, found: Answers) -> Iterator[Finding]:
    """Yield that the partition is closed, or allows less than the job asks for."""
    now, name = found.partition, wanted.partition
    if now is None:
        return
    if now.state != "UP":
        closed = now.state in ("DRAIN", "INACTIVE")
        yield finding(
            "cluster-partition",
            f"The partition {name} is {now.state}: "
            + ("sbatch refuses jobs." if closed else "jobs wait until it is UP again."),
            "Name another partition, or wait for the end of the maintenance.",
            wanted.at("partition"),
            "error" if closed else "warning",
        )
    if now.seconds and wanted.seconds and wanted.seconds > now.seconds:
        yield finding(
            "cluster-partition",
            f"The job asks for {walltime.text_of(wanted.seconds)}, and Slurm allows "
            f"{walltime.text_of(now.seconds)} in {name}.",
            f"Write {walltime.text_of(now.seconds)} or less, or name another partition.",
            wanted.at("time"),
        )
    if now.nodes is not None and wanted.nodes and wanted.nodes > now.nodes:
        yield finding(
            "cluster-partition",
            f"The job asks for {wanted.nodes:,} nodes, and Slurm allows {now.nodes:,} in {name}.",
            f"Write {now.nodes:,} nodes or fewer, or name another partition.",
            wanted.at("nodes"),
        )


def job_findings(wanted: Wanted, found: Answers) -> Iterator[Finding]:
    """Yield that the person has as many jobs as an account or a QOS allows."""
    if "jobs" in found.faults:
        return
    limits: list[tuple[str, int | None, int | None, int, int]] = []
    for one in _own(wanted, found):
        own = [job for job in found.jobs if job.account.lower() == one.account.lower()]
        running = sum(job.state == "RUNNING" for job in own)
        limits.append(
            (f"the account {one.account}", one.max_jobs, one.max_submit, len(own), running)
        )
    for quality in found.qos:
        if wanted.qos == quality.name:
            own = [job for job in found.jobs if job.qos == quality.name]
            running = sum(job.state == "RUNNING" for job in own)
            limits.append(
                (f"the QOS {quality.name}", quality.max_jobs, quality.max_submit, len(own), running)
            )
    for what, jobs, submit, has, running in limits:
        if submit is not None and has >= submit:
            yield finding(
                "cluster-jobs",
                f"You have {count(has, 'job')} in {what}, which allows {submit}: "
                "sbatch refuses another.",
                "Wait until one of them ends, or cancel one.",
            )
        elif jobs is not None and running >= jobs:
            yield finding(
                "cluster-jobs",
                f"In {what} you run {count(running, 'job')}, and {jobs} at a time are allowed: "
                "this one waits until one of them ends.",
                "Submit it anyway, or wait.",
                severity="note",
            )


def budget_findings(wanted: Wanted, found: Answers) -> Iterator[Finding]:
    """Yield that the account has less left than the job may be billed."""
    row = next((b for b in found.budgets if b.account.lower() == wanted.account.lower()), None)
    if row is None:
        return
    if row.left <= 0:
        yield finding(
            "cluster-budget",
            f"{wanted.account} has used up its {row.limit or 0:,.0f} {wanted.unit}."
            if row.limit
            else f"{wanted.account} has no {wanted.unit} left.",
            "Ask for more, or name another account: Slurm may refuse the job, or let it wait.",
            wanted.at("account"),
        )
    elif wanted.price is not None and wanted.price > row.left:
        yield finding(
            "cluster-budget",
            f"At its time limit the job is billed {wanted.price:,.1f} {wanted.unit}, and "
            f"{wanted.account} has {row.left:,.0f} left.",
            "Ask for less time or fewer nodes, or name another account.",
            wanted.at("account"),
        )
