"""Queries sites about jobs on request, and caches the answers for the session."""

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.app.launch.launcher_templates import TEMPLATES
from lumitui.app.launch.placement import placement_of
from lumitui.app.launch.program_call import own_python
from lumitui.app.launch.rules.offline_rules import python_of
from lumitui.app.survey.inquiry import job_paths
from lumitui.app.survey.inquiry.findings import findings
from lumitui.app.survey.inquiry.job_paths import InquiryNeeds
from lumitui.app.survey.inquiry.kept_budgets import KeptBudgets
from lumitui.app.survey.inquiry.topics import finding
from lumitui.remote.site import walltime
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.source_position import Position
from lumitui.remote.ssh.prompts import attendance
from lumitui.remote.survey.ask_inquiry import MOST_PATHS, Answers, InquiryRequest, inquire
from lumitui.remote.survey.meter_rows import BudgetRow

if TYPE_CHECKING:
    from lumitui.app.knowledge.script_job import ScriptJob
    from lumitui.app.launch.send.preview import Preview
    from lumitui.remote.connect import Connection
    from lumitui.remote.site.profile import Site

_ACTIVATE = TEMPLATES / "job" / "activate.sh"

FRESH_SECONDS = 300.0
"""How long an answer is reused: a queue changes in minutes."""
_QOS = re.compile(r"^#SBATCH\s+(?:--qos[= ]|-q\s*)(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Inquired:
    """A site's findings on a job, and their time."""

    findings: tuple[Finding, ...]
    at: float
    """Epoch seconds."""
    budget: BudgetRow | None = None
    """The remaining budget of the job's account, if known."""
    start: float | None = None
    """Slurm's estimate of the job's start, in epoch seconds."""


class Inquiries:
    """Queries about jobs, to any site. Threads may share it."""

    def __init__(
        self, connection: "Callable[[Site], Connection]", budgets: KeptBudgets | None = None
    ) -> None:
        """Query through `connection`, and store the accounts' budgets in `budgets`."""
        self._connection, self._budgets = connection, budgets
        self._kept: dict[tuple[str, InquiryRequest], tuple[Answers, float]] = {}
        self._lock = threading.Lock()

    def of_preview(
        self, preview: "Preview", *others: "Preview", fresh: bool = False, attended: bool = True
    ) -> Inquired:
        """Return the site's findings on a job file's launch; if it does not answer, a note.

        `others` are the further runs of a grid: they count for the budget and the number of jobs.
        `fresh` ignores earlier answers. Unless `attended`, no login asks a question.
        """
        try:
            needs = self._needs_of(preview, others)
        except LumiError as error:
            return _unanswered(error)
        script = preview.launch.script
        return self._answered(preview.site, needs, script, fresh=fresh, attended=attended)

    def known(self, preview: "Preview", *others: "Preview") -> tuple[Finding, ...]:
        """Return the site's recent findings on the same job, without querying the site."""
        site = preview.site
        with self._lock:
            has_answers = any(name == site.name for name, _ in self._kept)
        if not has_answers:
            return ()  # finding out the user's name there may take a moment
        try:
            needs = self._needs_of(preview, others)
        except LumiError:
            return ()
        kept = self._fresh(site, _request_of(site, needs, preview.launch.script))
        return _inquired(needs, *kept, site.name).findings if kept else ()

    def _needs_of(self, preview: "Preview", others: "Sequence[Preview]") -> InquiryNeeds:
        """Return the requirements of a launch; LumiError if the user's name there is unknown."""
        site, spec, launch = preview.site, preview.launch.spec, preview.launch
        partition = site.partitions[spec.partition]
        fields = ("account", "partition", "time", "nodes", "qos")
        at = {name: Position(field="sbatch" if name == "qos" else name) for name in fields}
        qos = _QOS.findall(launch.script)
        work = self._connection(site).work_root(site, spec.account)
        paths = job_paths.of_spec(spec, site, work)
        place, sent = placement_of(spec, site), spec.venv.sent if spec.venv else None
        slurm = site.scheduler == "slurm"
        where = (site.name, spec.account)
        alike = [one for one in others if (one.site.name, one.launch.spec.account) == where]
        asks_python = bool(sent or spec.python or spec.activate)
        return InquiryNeeds(
            paths,
            modules=(*place.modules, *place.activations) if slurm else (),
            functions=_ACTIVATE.read_text(encoding="utf-8") if slurm and place.activations else "",
            python=own_python(place) if slurm and asks_python and not place.container else "",
            python_version=python_of(place) if place.container else "",
            torch=place.trainer is not None,
            python_bound=sent.python if sent else "",
            account="" if spec.account == "none" else spec.account,
            partition=partition.slurm_partition or spec.partition,
            qos=qos[-1] if qos else "",
            seconds=walltime.seconds_of(spec.time),
            nodes=spec.nodes,
            price=sum(one.launch.price.amount for one in (preview, *alike)),
            jobs=1 + len(alike),
            unit=launch.price.unit,
            field_of=tuple(at.items()),
        )

    def of_script(self, job: "ScriptJob", site: "Site") -> Inquired:
        """Return the site's findings on a script that was read as `job`; see `of_preview`."""
        options, resources = job.options, job.resources
        names = ("account", "partition", "time", "nodes", "qos")
        at = {name: option.at for name in names if (option := options.get(name))}
        needs = InquiryNeeds(
            job_paths.of_job(job, site),
            account=resources.account or "",
            partition=resources.partition or "",
            qos=resources.qos or "",
            seconds=resources.seconds,
            nodes=resources.nodes,
            unit=site.billing_unit,
            field_of=tuple(at.items()),
        )
        return self._answered(site, needs, job.text, fresh=False, attended=True)

    def _answered(
        self, site: "Site", needs: InquiryNeeds, script: str, *, fresh: bool, attended: bool
    ) -> Inquired:
        request = _request_of(site, needs, script)
        try:
            kept = None if fresh else self._fresh(site, request)
            answers, at = kept or self._ask(site, request, attended=attended)
        except LumiError as error:
            return _unanswered(error)
        return _inquired(needs, answers, at, site.name)

    def _fresh(self, site: "Site", request: InquiryRequest) -> tuple[Answers, float] | None:
        kept = self._kept.get((site.name, request))
        return kept if kept and 0 <= time.time() - kept[1] < FRESH_SECONDS else None

    def _ask(
        self, site: "Site", request: InquiryRequest, *, attended: bool
    ) -> tuple[Answers, float]:
        """Return the answers and their time; LumiError if the site could not be queried."""
        connection = self._connection(site)
        with attendance(attended):
            answers = inquire(connection.transport, site, request)
        now = time.time()
        with self._lock:
            self._kept[site.name, request] = answers, now
            if self._budgets is not None:
                self._budgets.keep(site.name, answers.budgets, now)
        return answers, now


def _request_of(site: "Site", needs: InquiryNeeds, script: str) -> InquiryRequest:
    slurm = site.scheduler == "slurm"
    return InquiryRequest(
        paths=tuple(place.path for place in needs.places[:MOST_PATHS]),
        slurm=slurm,
        partition=needs.partition if slurm else "",
        quota=site.quota.command if site.quota else "",
        balance=site.commands.get("balance", "") if site.budget else "",
        modules=needs.modules,
        functions=needs.functions,
        python=needs.python,
        script=script if slurm else "",
    )


def _inquired(needs: InquiryNeeds, answers: Answers, at: float, site: str) -> Inquired:
    account = needs.account.lower()
    row = next((one for one in answers.budgets if one.account.lower() == account), None)
    start = answers.trial.start if answers.trial else None
    return Inquired(findings(needs, answers, at, site), at, row, start)


def _unanswered(error: LumiError) -> Inquired:
    message = f"Could not query the cluster: {error.message}"
    note = finding("cluster-silent", message, error.hint or "Try again later.")
    return Inquired((note,), time.time())
