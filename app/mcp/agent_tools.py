"""What an agent may do: each method of `AgentTools` is a tool, and returns plain data."""

import json
import os
import pwd
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from lumitui.app.mcp.agent_views import (
    Data,
    finding_view,
    is_of_agent,
    log_text,
    previews_view,
    run_view,
    untrusted,
)
from lumitui.app.mcp.allowance import (
    NO_REQUEUE,
    Allowance,
    read_allowance,
    refusal,
    refuse_outside,
    requeues,
    used_hours,
)
from lumitui.app.mcp.preview_tokens import PreviewTokens, digest_of
from lumitui.app.runs import (
    AGENT_TAG,
    CONTROL_CHARACTERS,
    Document,
    Filter,
    InputError,
    LumiError,
    Preview,
    Resubmission,
    Run,
    Runs,
    ScalingQuestion,
    Settings,
    open_draft,
    parse_filter,
    sender_lock,
    write_whole,
)

_MOST_LOG = 65_536
_MOST_POINTS = 500
_MOST_RUNS = 100
_MOST_TEXT = 100_000  # the same limit as for any job file
Code = Literal["same", "current"]
Start = Literal["scratch", "checkpoint"] | None


class AgentTools:
    """The tools over one `Runs`. Threads may share it."""

    def __init__(
        self,
        runs: Runs,
        settings: Settings,
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let an agent work in `folder`, which holds the job files and projects it may send.

        Raises:
            InputError: it is not a folder, or it holds more than projects: a home or an entire
                disk.
        """
        self._runs, self._settings = runs, settings
        self._folder = folder.resolve()
        # ssh reads .ssh in the account's home, which may differ from $HOME.
        homes = {Path.home().resolve(), Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()}
        is_above = any(home.is_relative_to(self._folder) for home in homes)
        if not self._folder.is_dir() or is_above:
            what = "contains your home folder" if self._folder.is_dir() else "is not a folder"
            raise InputError(
                f"An agent cannot work in {self._folder}: it {what}.",
                "Pass the folder of your projects.",
            )
        self._clock = clock
        self._tokens = PreviewTokens(clock)
        self._polled: dict[str, float] = {}
        self._hours: dict[str, float] = {}
        """GPU-hours of agents' runs seen by this server, in case they leave the history."""

    # -- read

    def list_sites(self) -> Data:
        """List the clusters that have a profile, and what the user allows agents there."""
        rows: list[Data] = []
        for name in self._runs.sites.names():
            try:
                site = self._runs.sites.load(name)
            except InputError as error:
                rows.append({"name": name, "broken": str(error)})
                continue
            partitions = {key: one.purpose for key, one in site.partitions.items()}
            node = f"{site.node.gpus} x {site.node.gpu}"
            rows.append({"name": name, "title": site.title, "node": node, "partitions": partitions})
        allowance = self._allowance()
        left = self._left(allowance)
        return {"sites": rows, "allowed": allowance, "gpu_hours_left": left}

    def list_runs(self, limit: int = 20, matching: str = "") -> Data:
        """List runs, the newest first. MATCHING is like `failed site:lumi nodes>=4 age<2d`."""
        criteria = Filter(terms=parse_filter(matching))
        found = self._runs.history.listed(max(1, min(limit, _MOST_RUNS)), criteria)
        return {"runs": list(map(run_view, found))}

    def show_run(self, run_id: str) -> Data:
        """Show a run: its last known state, its job file, and the proof of its binding."""
        run = self._runs.history.get(run_id)
        job = run.spec.model_dump(mode="json", exclude_defaults=True)
        shown = {"job": job, "proof": self._runs.proof(run).sentence}
        return {"run": run_view(run), **untrusted(shown)}

    def status(self, site: str | None = None) -> Data:
        """Query the sites for unfinished runs, each as often as its profile allows; list them."""
        warnings: list[str] = []
        if site is not None:
            self._runs.sites.load(site)
        unfinished = self._runs.history.unfinished(site)
        for name in sorted({run.site for run in unfinished}):
            if self._clock() - self._polled.get(name, float("-inf")) >= self._pause(name):
                self._polled[name] = self._clock()
                warnings += self._runs.refresh(name, attended=False).warnings
        runs = [run_view(self._runs.history.get(run.id)) for run in unfinished]
        return {"runs": runs, "warnings": untrusted(warnings)}

    def run_log(self, run_id: str, last: int = 16_384, attempt: int | None = None) -> Data:
        """Read the end of a run's log, at most the LAST bytes (65536)."""
        last = max(1, min(last, _MOST_LOG))
        start, data = self._runs.read_log(run_id, attempt=attempt, last=last)
        return {"offset": start, **untrusted(log_text(data))}

    def why(self, run_id: str) -> Data:
        """Explain why a run failed: the likeliest cause first, with the line that shows it."""
        rows = [
            {"cause": item.cause, "do": item.do, "line": item.line, "lines": item.telling}
            for item in self._runs.why(run_id)
        ]
        return {"run": self._runs.history.get(run_id).id, **untrusted(rows)}

    def metrics(self, run_id: str, last: int = 20) -> Data:
        """Return a summary of a run's metrics, and its LAST points (at most 500)."""
        points = self._runs.metrics(run_id)[-max(1, min(last, _MOST_POINTS)) :]
        return untrusted({"summary": self._runs.figures(run_id).summary, "points": points})

    def scaling(self, run_id: str, nodes: Sequence[int] = ()) -> Data:
        """Show how a run scales, and predict its speed and price on other numbers of NODES."""
        if wrong := [number for number in nodes if number < 1]:
            raise InputError(f"{wrong[0]} is not a number of nodes.", "Give numbers from 1.")
        return untrusted(self._runs.scaling.of(run_id, ScalingQuestion(tuple(nodes))))

    def compare(self, run_ids: list[str]) -> Data:
        """Compare two to four runs: job file, script, code and metrics."""
        found = self._runs.comparisons.of(run_ids)
        parts = {"job": found.fields, "code": found.code, "metrics": found.metrics}
        ids = [run.id for run in found.runs]
        return {"runs": ids, **untrusted({**parts, "scripts": found.scripts})}

    # -- job files

    def write_job(self, path: str, text: str) -> Data:
        """Write a job file (YAML) in the folder of the projects, and check it."""
        target = self._job_file(path)
        if CONTROL_CHARACTERS.intersection(str(target)):
            raise InputError(f"{path!r} has a control character.", "Choose another name.")
        if len(text.encode(errors="surrogatepass")) > _MOST_TEXT:
            raise InputError(f"{path} would be too large for a job file.", "Write less.")
        if target.exists() and not _is_job_file(open_draft(target).text):
            raise InputError(f"{path} is not a job file.", "Choose another name.")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, text)
        except OSError as error:
            raise InputError(
                f"{path} cannot be written: {error.strerror}.", "Check its folder."
            ) from error
        return self.check_job(path)

    def check_job(self, path: str) -> Data:
        """Check a job file: list all problems, each with its fix."""
        checked = self._runs.drafts.check(open_draft(self._job_file(path)))
        refuse_outside(checked.previews, self._folder)
        return {"findings": list(map(finding_view, checked.problems))}

    # -- actions that cost money or end a job: a preview gives the token

    def preview_job(self, path: str) -> Data:
        """Show exactly what submitting a job file would send and cost, with a token for it."""
        return self._previewed(*self._job(path))

    def submit_job(self, path: str, token: str) -> Data:
        """Submit a job file as previewed. TOKEN is from its preview and works once."""
        with self._alone():
            digest, previews = self._job(path)
            self._confirm(token, digest, previews)
            marked = [replace(one, note=AGENT_TAG) for one in previews]
            grid = bool(marked[0].cell)
            sent = self._runs.send_grid(marked) if grid else [self._runs.send(marked[0])]
            return {"runs": list(map(run_view, sent))}

    def preview_resubmit(
        self,
        run_id: str,
        nodes: int | None = None,
        settings: Sequence[str] = (),
        code: Code = "same",
        start: Start = None,
    ) -> Data:
        """Show what sending a run again would change and cost, with a token for it.

        SETTINGS are like `time=02:00:00` or `--lr=0.1`.
        """
        digest, plan = self._resubmission(run_id, nodes, settings, code, start)
        changes = {"changes": plan.plan.changes, "notes": plan.plan.notes}
        return changes | self._previewed(digest, (plan.preview,))

    def resubmit(
        self,
        run_id: str,
        token: str,
        nodes: int | None = None,
        settings: Sequence[str] = (),
        code: Code = "same",
        start: Start = None,
    ) -> Data:
        """Send a run again as previewed. TOKEN is from its preview and works once."""
        with self._alone():
            digest, plan = self._resubmission(run_id, nodes, settings, code, start)
            self._confirm(token, digest, (plan.preview,))
            marked = replace(plan, preview=replace(plan.preview, note=AGENT_TAG))
            return {"runs": [run_view(self._runs.resubmit(marked))]}

    def preview_cancel(self, run_id: str) -> Data:
        """Show the run that would be cancelled, with a token for it."""
        run = self._cancellable(run_id)
        return {"run": run_view(run), "token": self._tokens.give(_digest_of_cancel(run))}

    def cancel_run(self, run_id: str, token: str) -> Data:
        """Cancel a run's job as previewed. TOKEN is from its preview and works once."""
        run = self._cancellable(run_id)
        self._tokens.redeem(token, _digest_of_cancel(run))
        warnings: list[str] = []
        run = self._runs.cancel(run.id, warn=warnings.append)
        return {"run": run_view(run), "warnings": untrusted(warnings)}

    # -- within the allowance

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock of all servers, because two could spend the same GPU-hours."""
        with sender_lock(self._settings.data / "sending", "agents", wait=True):
            try:
                yield
            finally:
                self._used()

    def _allowance(self) -> Allowance:
        return read_allowance(self._settings.file)

    def _left(self, allowance: Allowance) -> float:
        return allowance.gpu_hours - self._used()

    def _used(self) -> float:
        """Return the GPU-hours that agents have used.

        Runs that have left the history still count, unless the user removed their tag first.
        """
        hours, history = used_hours(self._runs, time.time()), self._runs.history
        kept = history.finder.with_ids([run for run in self._hours if run not in hours])
        gone = {run: one for run, one in self._hours.items() if run not in kept}
        self._hours = gone | hours
        return sum(self._hours.values())

    def _pause(self, site: str) -> float:
        try:
            return self._runs.sites.load(site).poll_seconds
        except InputError:
            return 60.0

    def _job_file(self, path: str) -> Path:
        """Return the job file at `path`; InputError unless it is the user's YAML in the folder."""
        own = (self._settings.file.parent.resolve(), self._settings.data.resolve())
        try:
            target = (self._folder / path).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, or a null byte
            raise InputError(f"{path!r} is not a file path.", "Pass a job file.") from error
        within = target.is_relative_to(self._folder)
        hidden = within and any(
            part.startswith(".") for part in target.relative_to(self._folder).parts
        )
        if not within or hidden or any(target.is_relative_to(folder) for folder in own):
            raise InputError(
                f"An agent cannot use {path}.",
                f"It may use files in {self._folder} and its subfolders, but no hidden ones.",
            )
        if target.suffix not in (".yaml", ".yml"):
            raise InputError(f"{path} is not a job file.", "Its name must end with .yaml.")
        return target

    def _job(self, path: str) -> tuple[str, tuple[Preview, ...]]:
        """Return the previews of a job file with their digest."""
        target = self._job_file(path)
        previews = self._runs.previews(target)
        if any(map(requeues, previews)):
            options = [*previews[0].launch.spec.sbatch, NO_REQUEUE]
            previews = self._runs.previews(target, changes={"sbatch": options})
        refuse_outside(previews, self._folder)
        return digest_of("submit", str(target), previews, self._login(previews)), previews

    def _resubmission(
        self,
        run_id: str,
        nodes: int | None,
        settings: Sequence[str],
        code: Code,
        start: Start,
    ) -> tuple[str, Resubmission]:
        """Return a prepared resubmission of a run, with its digest."""

        def plan(settings: Sequence[str]) -> Resubmission:
            return self._runs.plan_resubmission(
                run_id, nodes=nodes, settings=tuple(settings), code=code, start=start
            )

        made = plan(settings)
        if requeues(made.preview):
            options = [*made.preview.launch.spec.sbatch, NO_REQUEUE]
            made = plan([*settings, f"sbatch={json.dumps(options)}"])
        refuse_outside((made.preview,), self._folder)
        parent = made.plan.parent
        subject = f"{parent.id} {parent.snapshot} {code} {made.plan.start}"
        login = self._login((made.preview,))
        return digest_of("resubmit", subject, (made.preview,), login), made

    def _login(self, previews: Sequence[Preview]) -> list[str]:
        """Return the logins of the previews' sites, which depend on the ssh configuration."""
        logins = []
        for name in sorted({one.site.name for one in previews}):
            try:
                logins.append(self._runs.login_address(name))
            except LumiError as error:  # a send reports the error
                logins.append(error.message)
        return logins

    def _previewed(self, digest: str, previews: Sequence[Preview]) -> Data:
        """Return a preview's content, with a token if the agent may send it."""
        allowance = self._allowance()
        if "preview" not in allowance.may:
            raise InputError("Agents may not preview: `agents.may` does not list `preview`.")
        refused = self._refusal(allowance, previews)
        return {
            **previews_view(previews),
            "gpu_hours_left": self._left(allowance),
            "refused": str(refused) if refused else "",
            "token": None if refused else self._tokens.give(digest),
        }

    def _refusal(self, allowance: Allowance, previews: Sequence[Preview]) -> LumiError | None:
        """Return why an agent may not send `previews`, or None if it may."""
        if refused := refusal(allowance, previews, self._left(allowance), self._settings.file):
            return refused
        try:
            for one in previews:
                one.check()
        except InputError as error:
            return error
        return None

    def _confirm(self, token: str, digest: str, previews: Sequence[Preview]) -> None:
        """Raise unless a token confirms these previews and the allowance permits them now."""
        self._tokens.redeem(token, digest)
        if refused := self._refusal(self._allowance(), previews):
            raise refused

    def _cancellable(self, run_id: str) -> Run:
        """Return a run that an agent sent; InputError if there is none, or they may not cancel."""
        run, allowance = self._runs.history.get(run_id), self._allowance()
        ask = f"Ask the user to run `lumitui cancel {run.id}`."
        if "cancel" not in allowance.may or run.site not in allowance.sites:
            raise InputError(f"Agents may not cancel runs at {run.site}.", ask)
        if not is_of_agent(run):
            raise InputError(f"No agent submitted {run.id}, so agents may not cancel it.", ask)
        return run


def _is_job_file(text: str) -> bool:
    """Return whether a file may be overwritten: it is a job file, or not valid YAML yet."""
    try:
        return "site" in Document(text, "", plain=True).data
    except InputError:
        return True


def _digest_of_cancel(run: Run) -> str:
    return digest_of("cancel", f"{run.site} {run.id} {run.job_id}")
