"""Asks sites about jobs when a person wants it, and keeps the answers for the session."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.app.compose import finding as advice
from lumitui.app.inquiry import places
from lumitui.app.inquiry.findings import findings
from lumitui.app.inquiry.wanted import Wanted, finding
from lumitui.app.lint.model.position import Position
from lumitui.app.lint.rule import Finding
from lumitui.remote import walltime
from lumitui.remote.errors import LumiError
from lumitui.remote.inquiry.answers import Answers
from lumitui.remote.inquiry.ask import inquire
from lumitui.remote.inquiry.meters import BudgetRow
from lumitui.remote.inquiry.request import MOST_PATHS, Asked
from lumitui.remote.ssh.prompts import attendance

if TYPE_CHECKING:
    from lumitui.app.lint.model.job import Job
    from lumitui.app.send.preview import Preview
    from lumitui.remote.connect import Connection
    from lumitui.remote.site.profile import Site

FRESH_SECONDS = 300.0
"""How long an answer counts when the same is asked again: a queue moves in minutes."""
_QOS = re.compile(r"^#SBATCH\s+(?:--qos[= ]|-q\s*)(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Inquired:
    """What a site says of a job, and when it said so."""

    findings: tuple[Finding, ...]
    at: float
    """Epoch seconds."""
    budget: BudgetRow | None = None
    """What the job's account has left; None: the site does not tell, or not so that it is read."""
    start: float | None = None
    """When the job would start by Slurm's estimate, in epoch seconds."""

    @property
    def advice(self) -> tuple[advice.Finding, ...]:
        """The findings as the adviser of job files has them."""
        return tuple(
            advice.Finding(one.rule, one.severity, one.message, one.do, one.source, one.at.field)
            for one in self.findings
        )


class Inquiries:
    """Questions about jobs, to any site. Threads may share it."""

    def __init__(self, connection: "Callable[[Site], Connection]") -> None:
        """Ask over what `connection` returns; nothing is asked yet."""
        self._connection = connection
        self._kept: dict[tuple[str, Asked], tuple[Answers, float]] = {}
        self._budgets: dict[tuple[str, str], tuple[BudgetRow, float]] = {}
        self._lock = threading.Lock()

    def of_preview(
        self, preview: "Preview", *, fresh: bool = False, attended: bool = True
    ) -> Inquired:
        """Return what the site says of a job file's launch; what it cannot say is a note.

        `fresh`: an earlier answer does not count. Not `attended`, no login asks a question.
        """
        site, spec, launch = preview.site, preview.launch.spec, preview.launch
        partition = site.partitions[spec.partition]
        fields = ("account", "partition", "time", "nodes", "qos")
        at = {name: Position(field="sbatch" if name == "qos" else name) for name in fields}
        qos = _QOS.findall(launch.script)
        try:
            work = self._connection(site).work_root(site, spec.account)
            found = places.of_spec(spec, site, work)
        except LumiError as error:
            return _unanswered(error)
        wanted = Wanted(
            found,
            account="" if spec.account == "none" else spec.account,
            partition=partition.slurm_partition or spec.partition,
            qos=qos[-1] if qos else "",
            seconds=walltime.seconds_of(spec.time),
            nodes=spec.nodes,
            price=launch.price.amount,
            unit=launch.price.unit,
            field_of=tuple(at.items()),
        )
        return self._answered(site, wanted, launch.script, fresh=fresh, attended=attended)

    def of_script(
        self, job: "Job", site: "Site", *, fresh: bool = False, attended: bool = True
    ) -> Inquired:
        """Return what the site says of a script that was read as `job`; see `of_preview`."""
        options, asked = job.options, job.resources
        names = ("account", "partition", "time", "nodes", "qos")
        at = {name: option.at for name in names if (option := options.get(name))}
        wanted = Wanted(
            places.of_job(job, site),
            account=asked.account or "",
            partition=asked.partition or "",
            qos=asked.qos or "",
            seconds=asked.seconds,
            nodes=asked.nodes,
            unit=site.billing_unit,
            field_of=tuple(at.items()),
        )
        return self._answered(site, wanted, job.text, fresh=fresh, attended=attended)

    def budget(self, site_name: str, account: str) -> tuple[BudgetRow, float] | None:
        """Return what an account had left when its site said so last, and when; it is not asked."""
        return self._budgets.get((site_name, account.lower()))

    def _answered(
        self, site: "Site", wanted: Wanted, script: str, *, fresh: bool, attended: bool
    ) -> Inquired:
        slurm = site.scheduler == "slurm"
        asked = Asked(
            paths=tuple(place.path for place in wanted.places[:MOST_PATHS]),
            slurm=slurm,
            partition=wanted.partition if slurm else "",
            quota=site.quota.command if site.quota else "",
            balance=site.commands.get("balance", "") if site.budget else "",
            script=script if slurm else "",
        )
        try:
            answers, at = self._asked(site, asked, fresh=fresh, attended=attended)
        except LumiError as error:
            return _unanswered(error)
        row = next(
            (b for b in answers.budgets if b.account.lower() == wanted.account.lower()), None
        )
        start = answers.trial.start if answers.trial else None
        return Inquired(findings(wanted, answers, at), at, row, start)

    def _asked(
        self, site: "Site", asked: Asked, *, fresh: bool, attended: bool
    ) -> tuple[Answers, float]:
        """Return the answers and when they came: kept ones where they are fresh.

        Raises:
            LumiError: the site could not be asked.
        """
        kept = self._kept.get((site.name, asked))
        if kept and not fresh and 0 <= time.time() - kept[1] < FRESH_SECONDS:
            return kept
        connection = self._connection(site)
        with attendance(attended):
            answers = inquire(connection.transport, site, asked)
        now = time.time()
        with self._lock:
            self._kept[site.name, asked] = answers, now
            for row in answers.budgets:
                self._budgets[site.name, row.account.lower()] = row, now
        return answers, now


def _unanswered(error: LumiError) -> Inquired:
    message = f"The cluster could not be asked: {error.message}"
    note = finding("cluster-silent", message, error.hint or "Try again later.")
    return Inquired((note,), time.time())
