"""Sends series of runs: recorded before the first is sent, each run sent exactly once.

A first attempt and a later one, after a failure or a kill, use the same code: it sends the unsent
members.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.app.history.listing.series_runs import Kind, RunSeries, SeriesMember
from lumitui.app.history.listing.tags import with_text
from lumitui.app.launch.send.lock import sender_lock
from lumitui.app.launch.send.shipment import slug
from lumitui.app.launch.site_names import escaped, escaped_text, templates_of
from lumitui.app.scale.resubmission import Resubmission
from lumitui.app.scale.run_plan import Follows
from lumitui.app.scale.series_words import (
    NEVER_A_JOB,
    MemberOutcome,
    SeriesUnfinished,
    Standing,
    standing,
)
from lumitui.remote.site.errors import InputError, LinkError, LumiError
from lumitui.remote.transfer.snapshots.once_mark import AlreadySent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lumitui.app.history.run import Run
    from lumitui.app.job.fields.mapping_fields import After, When
    from lumitui.app.launch.send.preview import Preview
    from lumitui.app.launch.send.submit import Report
    from lumitui.app.runs.launches import Launches

_LONGEST_NOTE = 200


@dataclass(frozen=True)
class _Ready:
    """A prepared member."""

    preview: Preview
    resubmission: Resubmission | None = None


class SeriesRuns:
    """Begins series, and sends their unsent members. Threads may share it."""

    def __init__(self, core: Launches, locks: Path) -> None:
        """Send through `core`.

        The locks in the folder `locks` prevent two processes from sending the same series.
        """
        self._core, self._locks = core, locks
        self._ready: dict[tuple[str, int], _Ready] = {}
        """Unsent members that were prepared before the series began."""

    # -- begin

    def begin_grid(self, previews: Sequence[Preview]) -> RunSeries:
        """Record the runs of a grid or of `then:`, without sending them.

        Raises:
            InputError: one of them has an error.
            SeriesUnfinished: an earlier `then:` of the job file is unfinished.
            HistoryError: the history cannot be written.
        """
        first = previews[0]
        source = str(first.job_file) if first.job_file else ""
        if source and previews[-1].follows:
            self._refuse_second_sequence(source)
        ready = [(one.cell, _grid_plan(one), _Ready(one)) for one in previews]
        return self._begin("then" if previews[-1].follows else "grid", source, ready)

    def begin_again(self, plans: Sequence[Resubmission]) -> RunSeries:
        """Record a run that is sent again on several sizes, or with its followers; send nothing.

        Raises:
            InputError: one of them has an error.
            SeriesUnfinished: an earlier ladder or sequence of the run is unfinished.
            HistoryError: the history cannot be written.
        """
        parent = plans[0].plan.parent.id
        kind: Kind = "then" if plans[-1].preview.follows else "ladder"
        self.refuse_second_ladder(parent)
        ready = [(plan.preview.name if kind == "then" else _size(plan), _ladder_plan(plan),
                  _Ready(plan.preview, plan)) for plan in plans]  # fmt: skip
        return self._begin(kind, parent, ready)

    def plan_followers(self, planned: Resubmission) -> tuple[Resubmission, ...]:
        """Return the plans of the runs that followed a run, to be sent again with it.

        Raises:
            InputError: one of them cannot be composed any more.
        """
        code = planned.plan.request.code
        plans = [
            (self._core.plan_resubmission(run.id, code=code, start="scratch"), when)
            for run, when in self.followers(planned.plan.parent.id)
        ]
        return tuple(
            replace(one, preview=replace(one.preview, follows=when)) for one, when in plans
        )

    def followers(self, run_id: str) -> tuple[tuple[Run, When], ...]:
        """Return the runs that followed a run of a sequence, each with how the one before must end.

        Those that were never sent are left out. Queries no site.
        """
        series = self._core.history.series.of_run(run_id)
        if series is None or series.kind != "then":
            return ()
        ids = [member.run for member in series.members]
        later = series.members[ids.index(run_id) + 1 :] if run_id in ids else ()
        runs = self._core.history.finder.with_ids([one.run for one in later if one.run])
        known = [(runs.get(one.run or ""), json.loads(one.plan)["follows"]) for one in later]
        return tuple((run, when) for run, when in known if run is not None)

    def same_plan(self, series: RunSeries, previews: Sequence[Preview]) -> bool:
        """Return whether a job file's series matches the current file."""
        return [one.plan for one in series.members] == [_grid_plan(one) for one in previews]

    def _begin(
        self, kind: Kind, source: str, ready: Sequence[tuple[str, str, _Ready]]
    ) -> RunSeries:
        for _, _, one in ready:
            one.preview.check()
        first = ready[0][2].preview
        name = f"{slug(_shared([one.preview.name for _, _, one in ready]))[:20]}"
        name = f"{name}-{secrets.token_hex(3)}"
        members = tuple(
            SeriesMember(place, words, plan) for place, (words, plan, _) in enumerate(ready, 1)
        )
        series = RunSeries(name, kind, first.site.name, source, time.time(), members)
        self._core.history.series.begin(series)
        self._ready |= {(name, place): one for place, (_, _, one) in enumerate(ready, 1)}
        return series

    # -- unsent members

    def standing(self, series: RunSeries) -> Standing:
        """Return which members of a series are jobs, without querying a site."""
        ids = [member.run for member in series.members if member.run]
        return standing(series, self._core.history.finder.with_ids(ids))

    def unsent(self, *, settle: bool = False) -> list[Standing]:
        """Return the series with unsent members, the newest first, without querying a site.

        Those that a process is sending now do not count. With `settle`, query the sites about
        members that may be jobs, and also return series with members that stay unknown.
        """
        unsent = []
        for series in self._core.history.series.offered():
            with sender_lock(self._locks, _lock(series.id)) as free:
                if not free:
                    continue
                now = self.standing(self._core.history.series.get(series.id))
                if settle:
                    now = self.settled(now)
                if now.left or (settle and now.open):
                    unsent.append(now)
                elif not now.open:
                    self._core.history.series.close(series.id)
        return unsent

    def unfinished(self, source: str) -> Standing | None:
        """Return the newest unfinished series of a job file or of a resubmitted run; no query.

        A series whose last member may or may not be a job is also unfinished. A process may be
        sending it now.
        """
        for series in self._core.history.series.offered():
            if series.source == source:
                now = self.standing(series)
                if now.left or now.open:
                    return now
        return None

    def interrupted(self, job_file: str) -> Standing | None:
        """Return the newest unfinished series of a job file, even if the last one was dropped."""
        if now := self.unfinished(job_file):
            return now
        series = self._core.history.series.newest_of(job_file)
        last = self.standing(series) if series is not None else None
        return last if last and (last.left or last.open) else None

    def refuse_second_ladder(self, parent_id: str) -> None:
        """Refuse a ladder while an earlier one is unfinished, which could send a size twice.

        Raises:
            SeriesUnfinished: an earlier ladder is unfinished; the message names it.
        """
        if now := self.unfinished(parent_id):
            raise SeriesUnfinished(f"An earlier resubmission of {parent_id} is unfinished", now)

    def _refuse_second_sequence(self, job_file: str) -> None:
        """Refuse a `then:` while an earlier one of its file is partly sent; drop an unsent one.

        Raises:
            SeriesUnfinished: an earlier one is partly sent; the message names it.
        """
        while now := self.unfinished(job_file):
            if now.sent or now.open:
                raise SeriesUnfinished(f"An earlier submission of {job_file} is unfinished", now)
            self.leave_out(now.series.id)

    def settled(self, now: Standing) -> Standing:
        """Return the standing of a series after querying its site about uncertain members."""
        if not now.open:
            return now
        self._core.refresh(now.series.site)
        now = self.standing(self._core.history.series.get(now.series.id))
        if not (now.left or now.open):
            self.leave_out(now.series.id)
        return now

    def leave_out(self, series_id: str) -> None:
        """Stop offering the unsent members of a series."""
        self._core.history.series.close(series_id)

    def made_ready(self, now: Standing) -> tuple[Preview, ...]:
        """Return the previews of the unsent members of a series.

        Raises:
            InputError: one of them can no longer be composed.
        """
        ready = [(self._made_ready(now.series, member), member.words) for member in now.left]
        return tuple(replace(one.preview, cell=own) for one, own in ready)

    def _made_ready(self, series: RunSeries, member: SeriesMember) -> _Ready:
        prepared = self._ready.get((series.id, member.place))
        if prepared and not prepared.preview.launch.spec.after:  # a run in `after:` may have ended
            return prepared
        if series.again:
            return self._planned_again(member)
        preview = self._grid_preview(member)
        return _Ready(replace(preview, note=prepared.preview.note) if prepared else preview)

    def _planned_again(self, member: SeriesMember, follows: Follows | None = None) -> _Ready:
        """Return a run that is sent again from its plan; `follows` is the run that it waits for."""
        plan = json.loads(member.plan)
        request = {key: plan[key] for key in ("nodes", "settings", "code", "start")}
        planned = self._core.plan_resubmission(plan["parent"], **request, follows=follows)
        return _Ready(planned.preview, planned)

    def _grid_preview(
        self,
        member: SeriesMember,
        recent: tuple[Preview, ...] = (),
        lane: Sequence[Run] = (),
        after: After | None = None,
    ) -> Preview:
        """Return the preview of a job file's member from its plan.

        It waits for the end of `lane`, or for the run of `after`.
        """
        # Late: listing unsent runs needs no parser of job files.
        from lumitui.app.job.spec import JobSpec

        plan = json.loads(member.plan)
        job_file = Path(plan["job_file"]) if plan["job_file"] else None
        spec = JobSpec.model_validate(plan["spec"])
        spec = spec.model_copy(update={"after": after}) if after else spec
        (preview,) = self._core.drafts.previews(
            spec, Path(plan["folder"]), job_file, recent, lane=lane
        )
        return replace(preview, cell=member.words, follows=plan.get("follows"))

    # -- send

    def send(
        self,
        series_id: str,
        *,
        report: Report = lambda step, words: None,
        sent: Callable[[Run], None] = lambda run: None,
        agreed: Sequence[SeriesMember] | None = None,
        forced: bool = False,
    ) -> tuple[MemberOutcome, ...]:
        """Send the unsent members of a series in order, each exactly once; call `sent` for each.

        `forced` sends them despite the adviser's errors, which the user has seen.

        This first queries the site about members that may be jobs, and does not send those whose
        outcome stays unknown. A grid or sequence stops at the first failure; a ladder continues
        unless the
        connection is lost. With `agreed`, this sends only those members, whose price the user saw.

        Returns:
            The outcome of each unsent member, in order.

        Raises:
            LumiError: another process is sending it, or a member cannot be prepared.
        """
        history = self._core.history
        with sender_lock(self._locks, _lock(series_id)) as free:
            if not free:
                raise LumiError(
                    f"Another process is sending the runs of {series_id}.", "Wait until it is done."
                )
            now = self.standing(history.series.get(series_id))
            if now.open:
                report("begin", f"querying {now.series.site} about {now.open[0][1].id}")
                now = self.settled(now)
            places = [one.place for one in agreed] if agreed is not None else None
            due = tuple(one for one in now.left if places is None or one.place in places)
            partial, now = len(due) < len(now.left), replace(now, left=due)
            ready = [self._made_ready(now.series, member) for member in due]
            if forced:
                ready = [replace(one, preview=replace(one.preview, forced=True)) for one in ready]
            for one in ready:
                one.preview.check()
            outcomes = self._send_all(now, ready, report, sent)
            whole = not now.open and not partial
            if whole and all(outcome.run is not None for outcome in outcomes):
                history.series.close(series_id)
        return tuple(outcomes)

    def _send_all(
        self, now: Standing, ready: Sequence[_Ready], report: Report, sent: Callable[[Run], None]
    ) -> list[MemberOutcome]:
        outcomes, over, total = list[MemberOutcome](), False, len(now.series.members)
        for member, one in zip(now.left, ready, strict=True):
            if over:
                outcomes.append(MemberOutcome(member))
                continue

            def report_place(step: str, words: str, place: int = member.place) -> None:
                report(step, f"{place} of {total}: {words}" if words else words)

            try:
                waiting = self._waiting(now.series, member, one)
                run = self._send_one(now.series, member, waiting, report_place)
            except AlreadySent as error:
                outcomes.append(self._sent_elsewhere(now.series, member, error))
                report_place("record", error.message)
            except LumiError as error:
                outcomes.append(MemberOutcome(member, error=error))
                over = now.series.kind != "ladder" or isinstance(error, LinkError)
            else:
                outcomes.append(MemberOutcome(member, run))
                self._ready.pop((now.series.id, member.place), None)
                sent(run)
        return outcomes

    def _waiting(self, series: RunSeries, member: SeriesMember, one: _Ready) -> _Ready:
        """Return a member, changed to wait for earlier members if it must.

        In a sequence, it waits for the previous member and for the end of all others: if the
        previous one is cancelled in the queue, an earlier one may still run. With `at_once: 4`, it
        waits for the runs four, eight, … places before it, for the same reason. All of these have
        been sent.
        """
        plan = json.loads(member.plan)
        by_place = {
            each.place: each.run for each in self._core.history.series.get(series.id).members
        }
        if when := plan.get("follows"):
            earlier = [by_place[place] or "" for place in range(1, member.place)]
            return self._following(series, member, one, earlier, when)
        lanes = plan.get("at_once")
        if not lanes:
            return one
        places = range(member.place - lanes, 0, -lanes)
        ids = [run for place in places if (run := by_place.get(place))]
        lane = self._awaited(series.site, ids)
        if not lane:
            return one
        preview = self._grid_preview(member, (one.preview,), lane)
        note, forced = one.preview.note, one.preview.forced
        return replace(one, preview=replace(preview, note=note, forced=forced))

    def _following(
        self, series: RunSeries, member: SeriesMember, one: _Ready, earlier: list[str], when: When
    ) -> _Ready:
        """Return a member of a sequence, changed to wait for the `earlier` runs.

        Raises:
            InputError: the run before it was not sent, or did not end as required.
        """
        # Late: listing unsent runs needs no parser of job files.
        from lumitui.app.job.fields.mapping_fields import After

        lane = [run for run in self._awaited(series.site, earlier) if run.id != earlier[-1]]
        run = self._core.history.finder.with_ids(earlier[-1:]).get(earlier[-1])
        if run is None or run.state in NEVER_A_JOB:
            raise InputError(f"The run before {member.words} was not sent.", "Send that run first.")
        try:
            if one.resubmission is not None:
                follows = Follows(run, when, self._folder_before(one), lane)
                ready = self._planned_again(member, follows)
            else:
                after = After(run=(run.id,), when=when)
                ready = _Ready(self._grid_preview(member, (one.preview,), lane, after))
        except InputError as error:
            hint = "Send all runs again." if error.field == "after" else error.hint
            raise InputError(error.message, hint) from error
        note, forced = one.preview.note, one.preview.forced
        return replace(ready, preview=replace(ready.preview, note=note, forced=forced))

    def _folder_before(self, one: _Ready) -> str:
        """Return the folder of the run that the parent of a member followed."""
        assert one.resubmission is not None
        series = self._core.history.series
        parent = one.resubmission.plan.parent.id
        sequence = series.of_run(parent)
        ids = [member.run for member in sequence.members] if sequence else []
        before = ids[ids.index(parent) - 1] if parent in ids[1:] else None
        return self._core.history.get(before).folder if before else ""

    def _awaited(self, site: str, ids: Sequence[str]) -> tuple[Run, ...]:
        """Return the runs among `ids` that have not ended."""
        runs = self._core.up_to_date(site, lambda: self._unfinished(ids))
        for run in runs:
            if run.job_id is None:
                raise LumiError(
                    f"It is still unknown whether {run.id} became a job, and this run depends on "
                    "it.",
                    "Run `lumitui status`, then send the rest.",
                )
        return runs

    def _unfinished(self, ids: Sequence[str]) -> tuple[Run, ...]:
        found = self._core.history.finder.with_ids(ids)
        return tuple(run for run in map(found.get, ids) if run and not run.state.is_final)

    def _note(self, series: RunSeries, member: SeriesMember) -> str:
        """Return the note of a run of a series: what it follows, or its series and settings."""
        if series.kind != "then":
            return f"{series.kind} {series.id}: {member.words}"
        members = self._core.history.series.get(series.id).members
        before = [each.run for each in members if each.place < member.place and each.run]
        later = ", ".join(each.words for each in members if each.place > member.place)
        return f"after {before[-1]}" if before else f"then {later}"

    def _send_one(
        self, series: RunSeries, member: SeriesMember, one: _Ready, report: Report
    ) -> Run:
        note, tags = self._note(series, member), one.preview.note
        room = _LONGEST_NOTE - (len(tags) + 1 if tags else 0)

        def begun(run: Run) -> None:
            self._core.history.series.claim(series.id, member.place, run.id)

        preview = replace(one.preview, note=with_text(tags, note[:room]))
        return self._core.send(
            preview,
            report=report,
            resubmission=one.resubmission,
            begun=begun,
            place=f"{series.id}-{member.place}",
            tried=self._core.history.series.tried(series.id, member.place),
        )

    def _sent_elsewhere(
        self, series: RunSeries, member: SeriesMember, error: AlreadySent
    ) -> MemberOutcome:
        """Return the outcome of a member that another laptop sent, and record its run."""
        history = self._core.history
        run = history.finder.with_ids([error.run]).get(error.run)
        if run is not None and history.series.of_run(run.id) is None:
            history.series.claim(series.id, member.place, run.id)
        return MemberOutcome(member, run, already=error.message)


def _shared(names: Sequence[str]) -> str:
    """Return the common prefix of the jobs' names: names in a grid end with their settings."""
    first, last = min(names), max(names)
    if first == last:
        return first
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    start = "".join(one for one, _ in same)
    return start.rpartition("-")[0] or start


def _lock(series_id: str) -> str:
    return f"series-{series_id}"


def _size(plan: Resubmission) -> str:
    nodes = plan.preview.launch.layout.nodes
    return f"{nodes:,} node{'' if nodes == 1 else 's'}"


def _grid_plan(preview: Preview) -> str:
    spec = escaped(preview.launch.spec, preview.site)
    folder = preview.job_file.parent if preview.job_file else preview.project
    data = spec.model_dump(mode="json", exclude_defaults=True)
    if not preview.job_file:
        data.pop("project", None)  # the folder is the project itself
    job_file = str(preview.job_file) if preview.job_file else None
    plan = {"spec": data, "folder": str(folder), "job_file": job_file}
    extra = {"at_once": preview.at_once, "follows": preview.follows}
    return json.dumps(plan | {key: value for key, value in extra.items() if value})


def _ladder_plan(resubmission: Resubmission) -> str:
    plan, names = resubmission.plan, templates_of(resubmission.preview.site)
    data = {
        "parent": plan.parent.id,
        "nodes": plan.launch.layout.nodes,
        "settings": [escaped_text(text, names) for text in plan.request.settings],
        "code": plan.request.code,
        "start": plan.start,
    }
    follows = resubmission.preview.follows
    return json.dumps(data | ({"follows": follows} if follows else {}))
