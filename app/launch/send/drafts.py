"""Previews of job files; drafts: checked, and fixed where a problem has a mechanical fix."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from operator import attrgetter
from pathlib import Path

from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.app.job import grid
from lumitui.app.job.edit import set_key
from lumitui.app.job.launch import Price
from lumitui.app.job.spec import JobSpec, job_of, parse_job
from lumitui.app.launch.compose import compose
from lumitui.app.launch.dependency import dependency_of
from lumitui.app.launch.draft import job_form
from lumitui.app.launch.draft.job_form import Field, FieldChoice, apply_fixes
from lumitui.app.launch.rules.mistakes import sequence, shared_outputs, waiting_lanes
from lumitui.app.launch.send import draft as beginnings
from lumitui.app.launch.send.code import project_files
from lumitui.app.launch.send.code.requirement_files import with_requirements
from lumitui.app.launch.send.draft import Draft
from lumitui.app.launch.send.preview import Preview, preview_of
from lumitui.app.launch.site_names import Fill, escaped, expanded, expanded_text
from lumitui.remote.connect import Connections, submit_command
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.finding import RANK, Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.plain_file import read_plain
from lumitui.remote.site.reading.validation import validate
from lumitui.remote.site.reading.yaml_document import Document
from lumitui.remote.site.sites import Sites
from lumitui.remote.site.source_position import at_key

_FILES = attrgetter("project", "trainer", "strategy", "script", "secrets", "workdir",
                    "ship_secrets", "follow_links", "links", "deepspeed", "fetch")  # fmt: skip
"""The keys that determine which files are sent."""

_STAND_INS = {"name": "job", "time": "00:01:00"}
"""Placeholders for invalid required keys, so that the other keys can be checked."""
LOOK_SECONDS = 5.0
"""Seconds for which a check reuses an earlier scan of the project's files: 2,000 of them take half
a second."""


@dataclass(frozen=True)
class CheckedDraft:
    """A draft with its previews, problems and form."""

    draft: Draft
    previews: tuple[Preview, ...]
    """The run to send, or those of the grid; empty if the draft cannot be composed."""
    problems: tuple[Finding, ...]
    """Errors first."""
    fields: tuple[Field, ...]
    """The form; empty if the text is not YAML."""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The problems that are errors."""
        return tuple(item for item in self.problems if item.severity == "error")

    @property
    def shown(self) -> tuple[Finding, ...]:
        """The problems, and what the form offers at its fields."""
        offers = (one for field in self.fields for one in field.problems)
        return tuple(dict.fromkeys((*self.problems, *offers)))

    @property
    def where(self) -> str:
        """The text's site and partition, if set."""
        place = (field.value for field in self.fields if field.key in ("site", "partition"))
        return " ".join(filter(None, place))


def total_price(previews: tuple[Preview, ...]) -> tuple[Price, ...]:
    """Return the total price of all runs, one for each unit."""
    prices: dict[str, Price] = {}
    for price in (preview.launch.price for preview in previews):
        before = prices.get(price.unit, Price(0.0, price.unit, 0.0))
        amount = round(before.amount + price.amount, 3)
        prices[price.unit] = Price(amount, price.unit, before.per_hour + price.per_hour)
    return tuple(prices.values())


@dataclass
class Drafts:
    """Makes previews and checks drafts without the network. Thread-safe."""

    sites: Sites
    connections: Connections
    history: History
    hashes: Path
    """The folder with the hashes of the projects' files."""
    images: Callable[[str], Sequence[FieldChoice]] = lambda site: ()
    """Returns a site's known images, without querying it."""
    answered: Callable[..., tuple[Finding, ...]] = lambda *previews: ()
    """Returns the cluster's earlier findings on a job and its others, without querying it."""

    _summaries: dict[str, tuple[bool, str]] = field(default_factory=dict)
    """Whether each site is closed, and its summary, read once: reading all profiles takes a tenth
    of a second."""
    _recent: tuple[float, tuple[Preview, ...]] = field(default=(0.0, ()))
    """The time and result of the last scan of a project's files."""

    def previews(
        self,
        spec: JobSpec,
        folder: Path,
        job_file: Path | None = None,
        recent: tuple[Preview, ...] = (),
        beside: tuple[tuple[str, str], ...] = (),
        lane: Sequence[Run] = (),
    ) -> tuple[Preview, ...]:
        """Return a preview for each run of `spec`.

        For the same files, `recent` previews are reused. The files `beside` are not written yet.
        The job waits for the end of `lane`, earlier runs of its grid.
        """
        previews: list[Preview] = []
        cells = grid.cells(spec)
        shared = (*shared_outputs(cells), *waiting_lanes(spec, len(cells)), *sequence(cells))
        for cell in cells:
            site = self.sites.load(cell.spec.site)
            waits = "at_once" if spec.at_once else "then" if spec.then else ""
            if waits and site.scheduler != "slurm":
                raise InputError(
                    f"{site.name} has no queue, so its runs cannot wait for each other.",
                    f"Remove `{waits}:`.",
                    field=waits,
                )
            billed, follows = _with_account(cell.spec, site), cell.follows is not None
            named = self.with_names(billed, site)
            dependency = dependency_of(named, site, self.history.get, lane, follows=follows)
            root = project_files.project_folder(folder, cell.spec.project)
            sent = _FILES(cell.spec)
            alike = (one for one in (*previews, *recent) if _FILES(one.launch.spec) == sent)
            same = next((one for one in alike if one.project == root), None)
            # Inspect a project once: a grid may have a hundred runs with the same files.
            own = with_requirements(dependency.spec, root)
            name = own.deepspeed.config if own.deepspeed else ""
            config = dict(beside).get(name or "") or project_files.deepspeed_config(own, root)
            launch = compose(own, site, deepspeed_config=config, dependency=dependency.options)
            files = same.files if same else project_files.look(launch.spec, root, self.hashes)
            one = preview_of(launch, site, submit_command(site), files, job_file, cell.words)
            every = (*one.findings, *shared, *dependency.findings)
            if follows:
                every = _of_follower(every, cell.name, previews)
            previews.append(
                replace(one, findings=every, at_once=spec.at_once, follows=cell.follows)
            )
        return tuple(previews)

    def with_names(self, spec: JobSpec, site: Site) -> JobSpec:
        """Return a job file with the values of `$USER` and the profile's folders at `site`."""
        return expanded(spec, site, self._fill(spec, site))

    def text_with_names(self, text: str, spec: JobSpec, site: Site) -> str:
        """Return a text of a job file with the same values."""
        return expanded_text(text, site, self._fill(spec, site))

    def _fill(self, spec: JobSpec, site: Site) -> Fill:
        connect = self.connections.get
        return lambda template: connect(site).filled(template, site, spec.account)

    def check(self, draft: Draft) -> CheckedDraft:
        """Return all problems of a draft, with its previews if it can be composed."""
        try:
            document = Document(draft.text, draft.name, plain=True)
        except InputError as error:
            return CheckedDraft(draft, (), job_form.problem_of(error, None), ())
        previews: tuple[Preview, ...] = ()
        findings: tuple[Finding, ...]
        try:
            spec = job_of(document)
            previews = self._quick_previews(spec, draft)
            findings = _findings(previews, spec, document)
        except LumiError as error:
            findings = self._further(job_form.problem_of(error, document), document, draft)
        findings = tuple(sorted(dict.fromkeys(findings), key=lambda item: RANK[item.severity]))
        site = previews[0].site if previews else self._site(document.data)
        images = self.images(site.name) if site else ()
        program = previews[0].program if previews else ""
        rows = job_form.fields(document.data, site, self._offered(), findings, images, program)
        # The form may add a fix that the rule lacks.
        better = {(p.at.field, p.message): p for row in rows for p in row.problems}
        findings = tuple(better.get((item.at.field, item.message), item) for item in findings)
        return CheckedDraft(draft, previews, findings, rows)

    def _offered(self) -> dict[str, str]:
        """Return the sites with their summaries, the user's own first, closed sites last."""
        for name in self.sites.names():
            if name not in self._summaries:
                try:
                    site, today = self.sites.load(name), date.today()
                    self._summaries[name] = site.is_closed(today), site.summary(today)
                except InputError:
                    self._summaries[name] = True, "lumitui cannot read its profile"
        own, summaries = self.sites.own(), self._summaries
        names = sorted(self.sites.names(), key=lambda name: (summaries[name][0], name not in own))
        return {name: summaries[name][1] for name in names}

    def _further(
        self, findings: tuple[Finding, ...], document: Document, draft: Draft
    ) -> tuple[Finding, ...]:
        """Return `findings`, which keep a text from composing, and the errors of its other keys.

        It ignores errors at the invalid keys or without a key, which may be consequences.
        """
        data, new, last = dict(document.data), findings, False
        while not last:
            wrong = {item.at.field.split(".")[0] for item in new}
            kept = {key: value for key, value in data.items() if key not in wrong}
            if len(kept) == len(data):
                break
            data = kept
            try:
                stand_ins = {key: value for key, value in _STAND_INS.items() if key not in data}
                spec = validate(document, JobSpec, stand_ins | data)
                new, last = _findings(self._quick_previews(spec, draft), spec, document), True
            except LumiError as error:
                new = job_form.problem_of(error, document)
            new = tuple(item for item in new if item.severity == "error")
            new = tuple(item for item in new if item.at.field.split(".")[0] in data)
            findings += new
        return findings

    def _quick_previews(self, spec: JobSpec, draft: Draft) -> tuple[Preview, ...]:
        """Return the previews; scan the project's files seldom: a send scans them again."""
        now, (looked, recent) = time.monotonic(), self._recent
        saved = bool(recent) and recent[0].job_file != draft.path  # perhaps with an example's files
        if now - looked > LOOK_SECONDS or saved:
            looked, recent = now, ()
        previews = self.previews(spec, draft.folder, draft.path, recent, draft.files)
        if not recent or previews[0].files is not recent[0].files:
            looked = now
        self._recent = looked, previews[:1]
        if spec.script in dict(draft.files):
            previews = tuple(map(_to_save_first, previews))
        # The run names the file, which would then not show what was sent.
        note = draft.differs if draft.path and draft.unsaved else ""
        return tuple(
            replace(one, findings=(*one.findings, *self.answered(one, *previews[1:])), note=note)
            for one in previews
        )

    def _site(self, data: Mapping[str, object]) -> Site | None:
        try:
            return self.sites.load(str(data.get("site", "")))
        except LumiError:
            return None

    # -- new drafts

    def open(self, path: Path) -> Draft:
        """Return a file as a draft, to compare with the last run that was sent from it."""
        draft = beginnings.open_draft(path)
        last = next((run for run in self._runs() if run.job_file == str(draft.path)), None)
        # A list of runs comes without their scripts.
        return replace(draft, base=self.history.get(last.id).script if last else None)

    def example(self, name: str, folder: Path) -> Draft:
        """Return an example for the site and account of the last run, or raise InputError."""
        site, account = self._last_used()
        return beginnings.from_example(name, site, account, folder)

    def script(self, path: Path) -> Draft:
        """Return a job file for a user's own script as a draft in the script's folder.

        A Python program gets the site of the last run; an sbatch script its own.

        Raises:
            InputError: the script cannot be read, or is not a job script.
        """
        from lumitui.app.job.examples import Beginning
        from lumitui.app.launch.from_script import own_scripts
        from lumitui.app.launch.from_script.import_report import import_parts

        if path.suffix == ".py":
            site, account = self._last_used()
            text = own_scripts.program_text(path, site, Beginning(account=account or None))
            return Draft(text, path.parent, path.name)
        data = read_plain(path, own_scripts.LARGEST_SCRIPT)
        script = own_scripts.import_script(data, path, self.sites)
        parts = import_parts(script.report)
        if script.because:
            parts["site"] = (script.chosen,)
        report = tuple((fate, text) for fate, texts in parts.items() for text in texts)
        return Draft(script.text, path.parent, path.name, imported=report)

    def at_site(self, text: str, name: str) -> str:
        """Return a job file's text for another site, with an account and a partition of that site.

        Values that the site accepts stay.
        """
        from lumitui.app.job.examples import fitting_partition

        text, site = set_key(text, ("site",), name), self._site({"site": name})
        try:
            spec = parse_job(text, "job")
        except LumiError:
            return text
        if site is None:
            return text
        if spec.partition not in site.partitions:
            text = set_key(text, ("partition",), fitting_partition(site, spec))
        if site.account.objection(spec.account):
            there = (run.brief.account for run in self._runs() if run.site == name)
            account = next(there, site.account.default)
            text = set_key(text, ("account",), account) if account else text
        return text

    def _last_used(self) -> tuple[Site, str]:
        """Return site and account of the last run on a cluster, else the user's own one or here."""
        for run in self._runs():
            if (site := self._cluster(run.site)) is not None:
                return site, run.brief.account if run.brief.account != "none" else ""
        own = [site for name in self.sites.own() if (site := self._cluster(name)) is not None]
        if len(own) == 1:
            return own[0], own[0].account.default
        names = self.sites.names()
        return self.sites.load("laptop" if "laptop" in names else names[0]), ""

    def _cluster(self, name: str) -> Site | None:
        site = self._site({"site": name})
        return site if site is not None and site.scheduler == "slurm" else None

    def run(self, run_id: str) -> Draft:
        """Return the job file of a run as a draft."""
        run = self.history.get(run_id)
        site = self._site({"site": run.site})
        if site is None:  # its profile is gone
            return beginnings.from_run(run)
        sent, written = partial(self.with_names, site=site), partial(escaped, site=site)
        return beginnings.from_run(run, sent, written)

    def _runs(self) -> list[Run]:
        return self.history.page(limit=50)


def _to_save_first(preview: Preview) -> Preview:
    """Return a preview whose finding on the missing script explains how to write it."""
    do = "Save the job file, which also writes the example's files."
    findings = (replace(one, do=do) if one.rule == "script" else one for one in preview.findings)
    return replace(preview, findings=tuple(findings))


def _findings(
    previews: tuple[Preview, ...], spec: JobSpec, document: Document
) -> tuple[Finding, ...]:
    return tuple(
        job_form.in_grid(job_form.at_line(finding, document), spec.grid, document)
        for preview in previews
        for finding in preview.findings
    )


def _with_account(spec: JobSpec, site: Site) -> JobSpec:
    """Return a job with the profile's default account if it names none but needs one."""
    account = site.account
    if spec.account != "none" or not account.required or not account.default:
        return spec
    return spec.model_copy(update={"account": account.default})


def _of_follower(
    findings: tuple[Finding, ...], name: str, before: Sequence[Preview]
) -> tuple[Finding, ...]:
    """Return the findings of a job of `then:` that no job `before` it has, at its own keys."""
    known = {item for one in before for item in one.findings}
    own = []
    for item in findings:
        if item not in known:
            at = at_key(f"then.{name}.{item.at.field}") if item.at.field else at_key(f"then.{name}")
            fix = item.fix and replace(item.fix, at=at_key(f"then.{name}.{item.fix.at.field}"))
            own.append(replace(item, message=f"{name}: {item.message}", at=at, fix=fix))
    return tuple(own)


_MOST_ROUNDS = 10
"""Maximum number of rounds: a fix may reveal the next problem, but two may undo each other."""


@dataclass(frozen=True)
class FixedDraft:
    """A draft after its fixes."""

    draft: Draft
    done: tuple[Finding, ...]
    """The problems that were fixed, in order."""
    left: tuple[Finding, ...]
    """The problems left for the user; errors first."""


def fixed_draft(draft: Draft, check: Callable[[Draft], tuple[Finding, ...]]) -> FixedDraft:
    """Return `draft` with the fixes of the problems that `check` finds."""
    done: list[Finding] = []
    seen, problems = {draft.text}, check(draft)
    for _ in range(_MOST_ROUNDS):
        text, made = apply_fixes(draft.text, problems)
        if text in seen:
            break
        seen.add(text)
        draft, done = draft.edited(text), [*done, *made]
        problems = check(draft)
    return FixedDraft(draft, tuple(done), problems)
