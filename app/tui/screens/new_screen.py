"""A new run: a job file as a form, as text, as its job script and as a map of its nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from lumitui.app.explain.run_phrases import Outlook
from lumitui.app.explain.words import count, site_names
from lumitui.app.runs import (
    InputError,
    LumiError,
    Runs,
    attendance,
    fixed_draft,
    place_of_key,
    save_draft,
    set_key,
)
from lumitui.app.tui.asking import ask, show_error, tui
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.line_dialog import LineDialog
from lumitui.app.tui.panes.compose.compose_views import DraftViews, View
from lumitui.app.tui.panes.compose.field_list import FieldList
from lumitui.app.tui.panes.compose.import_pane import ImportPane
from lumitui.app.tui.panes.compose.send_line import SendLine, may_be_forced
from lumitui.app.tui.panes.compose.start_pane import Beginning, StartList, beginning
from lumitui.app.tui.panes.compose.text_pane import TextEditor
from lumitui.app.tui.screens.page import EXPLAINED_WIDTH, FullScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.check_wait import CheckWait
from lumitui.app.tui.widgets.input import JobFileSuggester, LineInput
from lumitui.app.tui.widgets.launch_text import series_terms, terms

if TYPE_CHECKING:
    from lumitui.app.runs import CheckedDraft, Draft, FixedDraft, Inquired, Preview, StartPlace

START = "Choose a starting point below, or type the path of a job file here."

PLACES = 100
"""Minimum columns for the job file's folder, site and partition in the title bar."""
_NEWER = 50  # number of recent runs whose sites are compared with the job's own


class NewScreen(FullScreen):
    """The starting points; then the four views of the draft, its price and the Submit button."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+w", "save", "Save", id="new.save", tooltip="Save the job file"),
        Binding("f6", "editor", "Editor", id="new.editor", tooltip="Edit the text in $EDITOR"),
        Binding("s,ctrl+s", "submit", "Submit", show=False, id="new.submit",
                tooltip="Submit the job, after confirmation"),
        Binding("right_square_bracket", "next_view(1)", "View", key_display="[ ]",
                id="new.next", tooltip="Go to the next view: form, YAML, script, node map"),
        Binding("left_square_bracket", "next_view(-1)", "Previous view", show=False,
                id="new.previous", tooltip="Go to the previous view"),
        Binding("down", "list", "The list", show=False, id="new.list",
                tooltip="Go from the path to the starting points"),
        Binding("Q", "ask_cluster", "Query the cluster", show=False, id="new.cluster",
                tooltip="Query the cluster: image, folders, quotas, limits, budget, start"),
        Binding("P", "places", "Where it starts", show=False, id="new.places",
                tooltip="Compare when partitions and sites would start the job; choose one"),
        Binding("n", "start", "New", id="new.open",
                tooltip="Start from another file, an example or a run"),
        Binding("r", "again", "Refresh", show=False, id="new.again",
                tooltip="Read the job file again"),
        Binding("f1", "view('form')", "Form", show=False, id="new.form", tooltip="Show the form"),
        Binding("f2", "view('yaml')", "YAML", show=False, id="new.yaml",
                tooltip="Show the text of the job file"),
        Binding("f3", "view('script')", "Script", show=False, id="new.script",
                tooltip="Show the job script and its changes"),
        Binding("f4", "view('node')", "Node", show=False, id="new.node",
                tooltip="Show which rank has which cores and GPU"),
        Binding("I", "imported", "Import", show=False, id="new.imported",
                tooltip="See what the import lost and changed, or go back to the job"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, job: Path | None = None, *, fresh: bool = False) -> None:
        """Start a new run in `runs`, from the job file `job` if given.

        Without it, open the last job file, or the starting points if `fresh` is set.
        """
        super().__init__(runs)
        self._job, self._fresh = job, fresh
        self._draft: Draft | None = None
        self._left: Draft | None = None  # the draft that was open before the starting points
        self._opened = ""  # the draft's initial text, which is not an unsaved edit
        self._checked: CheckedDraft | None = None
        self._price: Outlook | None = None
        self._asked = 0
        self._checking = self._stale = False
        """Whether a check is running, and whether its draft was edited since."""
        self._changed = False  # whether another program changed the file
        self._reading = False  # whether a thread reads the file

    def body(self) -> ComposeResult:
        """Yield the job file's path, the starting points, the verdict, and the views."""
        yield LineInput(placeholder=START, id="path", compact=True, suggester=JobFileSuggester())
        yield StartList(self._type)
        yield SendLine()
        yield ImportPane()
        yield DraftViews()

    def begin(self) -> None:
        """Open the given job file or the unsaved draft, or offer starting points."""
        self.set_interval(1.0, self._watch_disk)
        self._start_again(self._job.parent if self._job else None)
        kept = tui(self).kept
        if self._job and kept and kept.path and kept.path.absolute() == self._job.absolute():
            self._take_kept(kept)
            self.notify(f"These are your unsaved edits; r reads {kept.path.name} again.",
                        markup=False)  # fmt: skip
        elif self._job:
            self._open("file", str(self._job))
        elif kept is not None:
            self._take_kept(kept)
        elif not self._fresh and (path := tui(self).job_file) and os.path.isfile(path):
            self._open("file", str(path))

    def _take_kept(self, kept: Draft) -> None:
        tui(self).kept = None  # kept again, with further edits, on leaving
        self._take(kept, opened="")

    def on_unmount(self) -> None:
        """Keep an unsaved draft, or its path, for the next visit; also if another file opens."""
        if (draft := self._draft or self._left) and draft.path:
            tui(self).job_file = draft.path
        if self._edited_draft or not self._job:
            tui(self).kept = self._edited_draft

    # -- starting points

    def action_start(self) -> None:
        """Offer starting points."""
        self._guard(self._start_again)

    def _start_again(self, folder: Path | None = None) -> None:
        """Offer starting points in `folder`, by default the current folder."""
        self._left = self._draft or self._left
        self._draft = self._checked = None
        self._asked += 1
        self.query_one("#path", Input).value = ""
        self.title_text("2 New")
        try:
            runs = self.runs.history.page(limit=20)
        except LumiError as error:
            runs = []
            show_error(self, error)
        menu = self.query_one(StartList)
        menu.opening = False
        menu.offer(folder or Path.cwd(), runs)
        self._show_parts()
        self._enable()
        menu.focus()

    @on(StartList.OptionSelected)
    def _chosen(self, event: StartList.OptionSelected) -> None:
        kind, value = beginning(event.option.id or "")
        self._open(kind, value)

    def _type(self, text: str) -> None:
        """Move text typed on the list to the path field, where enter opens it."""
        path = self.query_one("#path", Input)
        path.select_on_focus = False  # further text is appended, and replaces nothing
        path.cursor_position = len(path.value)
        path.insert_text_at_cursor(text)
        self.set_focus(path)

    def action_list(self) -> None:
        """Focus the starting points."""
        self.query_one(StartList).focus()

    @on(Input.Submitted, "#path")
    def _typed(self, event: Input.Submitted) -> None:
        path = path_of(event.value.strip() or ".")
        if os.path.isdir(path):  # Path.is_dir() raises if a name is too long
            self._guard(lambda: self._start_again(path))
        else:
            self._guard(lambda: self._open("file", str(path)))

    def _open(self, kind: Beginning, value: str) -> None:
        self._asked += 1
        self.query_one(StartList).opening = True
        if kind == "file":
            self.query_one("#path", Input).value = value
        number = self._asked
        ask(self, lambda runs: _opened(runs, kind, value),
            lambda draft: self._draft_opened(number, draft),
            failed=lambda _: self._draft_opened(number, None))  # fmt: skip

    def _draft_opened(self, number: int, draft: Draft | None) -> None:
        if number != self._asked:
            return
        self.query_one(StartList).opening = False
        if draft is not None:
            self._take(draft, opened=draft.text)

    def _take(self, draft: Draft, opened: str) -> None:
        """Show another draft, which had the text `opened` initially."""
        self._draft, self._opened, self._changed = draft, opened, False
        self._checked = self._left = None
        self._show_parts()
        self.query_one(DraftViews).begin(draft)
        self.show_saved()
        self._check()

    # -- edits

    @on(DraftViews.Edited)
    def _edited(self, event: DraftViews.Edited) -> None:
        if self._draft is not None:
            self._draft = self._draft.edited(event.text)
            self._asked += 1
            self._enable()
            self.show_saved()

    @on(DraftViews.CheckDue)
    def _check(self) -> None:
        if self._draft is None:
            return
        self._asked += 1
        self._enable()
        # One check at a time: a held key would start ten per second.
        self._stale = self._checking
        if not self._checking:
            self._checking = True
            number, draft = self._asked, self._draft
            ask(self, lambda runs: _checked(runs, draft),
                lambda found: self._draft_checked(number, *found),
                failed=lambda _: self._draft_checked(number, None, None))  # fmt: skip

    def _draft_checked(
        self, number: int, checked: CheckedDraft | None, price: Outlook | None
    ) -> None:
        self._checking = False
        if self._stale:
            self._check()
        if number != self._asked or self._draft is None:
            return  # the draft was edited meanwhile
        if checked is not None:
            self._checked, self._price = checked, price
            self.query_one(DraftViews).check(checked)
            self._draw_title(checked)
            self.query_one(SendLine).show(checked, price)
        self._enable(waits=False)
        if checked is None:
            self.query_one(CheckWait).end(None)
        else:
            self._end_wait(checked)

    def _draw_title(self, checked: CheckedDraft) -> None:
        path, origin = checked.draft.path, f"from {checked.draft.origin}"
        if path is not None:
            origin = path.name if self.size.width < PLACES else f"{path.parent.name}/{path.name}"
        parts = (origin, checked.where) if self.size.width >= PLACES else (origin,)
        self.title_text("2 New", *filter(None, parts))

    def _enable(self, *, waits: bool = True) -> None:
        """Enable Submit only for a checked and valid draft; it shows that it `waits` for that."""
        checked, draft = self._checked, self._draft
        right = checked is not None and draft is not None and checked.draft.text == draft.text
        valid = checked is not None and (not checked.errors or may_be_forced(checked))
        self.query_one(SendLine).enable(right=right, valid=valid, waits=waits)

    @on(FieldList.AllFixesWanted)
    def _fix_all(self) -> None:
        """Apply the fixes, and those that they make necessary."""
        draft = self._draft
        assert draft is not None

        def fixed(found: FixedDraft) -> None:
            if self._draft is draft:  # it was not edited meanwhile
                self.query_one(DraftViews).write(found.draft.text)
                done = ", ".join(one.fix.words for one in found.done if one.fix)
                self.notify(f"Fixed {len(found.done)}: {done}.", markup=False, timeout=15)

        ask(self, lambda runs: fixed_draft(draft, lambda one: runs.drafts.check(one).shown), fixed)

    # -- views

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable commands that need a draft only when one is open."""
        needs = ("submit", "next_view", "save", "editor", "ask_cluster", "places", "view", "start",
                 "again")  # fmt: skip
        if action == "imported":
            return bool(self._draft and self._draft.imported)
        if action == "list":
            return self._draft is None
        return action not in needs or self._draft is not None

    def _show_parts(self) -> None:
        self.refresh_bindings()
        open_now = self._draft is not None
        self.query_one("#path", Input).select_on_focus = True
        for name in ("#path", "#files"):
            self.query_one(name).display = not open_now
        self.query_one(ImportPane).show(self._draft)
        for name in ("#draft", "#send"):
            self.query_one(name).display = open_now

    def action_view(self, view: View) -> None:
        """Show a view and focus it."""
        self.query_one(DraftViews).open(view)

    def action_imported(self) -> None:
        """Focus the report of the import, or return to the previous view."""
        pane = self.query_one(ImportPane)
        if not pane.has_focus:
            pane.focus()
        else:
            self.query_one(DraftViews).step(0)

    def action_next_view(self, step: int) -> None:
        """Show the view `step` places to the right."""
        self.query_one(DraftViews).step(step)

    # -- files

    @property
    def _edited_draft(self) -> Draft | None:
        """The draft with edits that its file lacks, or None."""
        draft = self._draft
        return draft if draft and draft.unsaved and draft.text != self._opened else None

    @property
    def unsaved(self) -> Draft | None:
        """The draft with edits that neither its file nor a run has, or None."""
        draft = self._edited_draft
        return draft if draft and draft.text != tui(self).sent else None

    def show_saved(self) -> None:
        """Show whether there are unsaved edits, or another program changed the file."""
        unsaved = self._edited_draft is not None
        saved = not unsaved and self._draft is not None and self._draft.path is not None
        self.query_one(DraftViews).mark(saved=saved, unsaved=unsaved, changed=self._changed)

    def _watch_disk(self) -> None:
        """Look each second whether another program changed the file."""
        if self.is_seen and not self._reading:
            self._read_disk()

    def _read_disk(self, then: Callable[[], object] = lambda: None) -> None:
        """Read the file in a thread, since its file system may hang; offer to reload a changed one.

        Afterwards, call `then`, unless the draft was edited meanwhile.
        """
        if (draft := self._draft) is None:
            return

        def read(changed: bool) -> None:
            self._reading = False
            if self._draft is draft and self._changed is not changed:
                self._changed = changed
                self.show_saved()
                if changed:
                    words = f"Another program changed {draft.name}. Press f1, then r to reload it."
                    self.notify(words, severity="warning", markup=False)
            if self._draft and self._draft.text == draft.text:
                then()

        self._reading = True
        ask(self, lambda _: draft.changed_on_disk(), read)

    def action_save(self) -> None:
        """Save the job file; ask for a path if it has none, or if another program changed it."""
        if self._draft is None:
            return
        if self._draft.path is not None and not self._changed:
            self._save(None)
            return

        def named(path: str | None) -> None:
            if path is not None:
                self._save(path_of(path).absolute())

        path = str(self._draft.folder / ("job-2.yaml" if self._changed else "job.yaml"))
        words = "lumitui does not overwrite an existing file."
        if self._changed:
            words = f"Another program changed {self._draft.name}. Choose another name."
        self.app.push_screen(LineDialog("Save the job file as", words, path, check=_path), named)

    def _save(self, path: Path | None) -> bool:
        assert self._draft is not None
        try:
            self._draft = save_draft(self._draft, path)
        except LumiError as error:
            show_error(self, error)
            return False
        if path is not None:
            self._draft = replace(self._draft, folder=path.parent, origin=path.name)
            self.query_one(DraftViews).post_message(DraftViews.CheckDue())
        self._opened, self._changed = self._draft.text, False
        self.show_saved()
        self.notify(f"Saved {self._draft.path}.", markup=False)
        return True

    def action_editor(self) -> None:
        """Edit the text in the user's editor."""
        if self._draft is None:
            return
        from lumitui.app.tui.panes.compose.editor import edited

        try:
            text = edited(self.app, self._draft.text)
        except LumiError as error:
            show_error(self, error)
            return
        if text != self._draft.text:
            self.query_one(DraftViews).write(text)

    def _guard(self, then: Callable[[], object]) -> None:
        """Do `then` after asking about unsaved edits."""
        draft = self.unsaved
        if draft is None:
            then()
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._opened = draft.text
                then()

        lines = [("not saved", draft.name), ("to save it", "n, then ctrl+w")]
        asked = Confirm("Discard the edits?", lines, "Discard", no="Your edits are kept.",
                        patient=True)  # fmt: skip
        self.app.push_screen(asked, answered)

    def action_back(self) -> None:
        """Go from the starting points to the draft before them, or ask about edits and leave."""
        if self._draft is not None or (left := self._left) is None:
            self._guard(super().action_back)
        elif left.path:
            self._open("file", str(left.path))
        else:
            self._take(left, opened=left.text)

    def action_again(self) -> None:
        """Read the job file again."""
        if self._draft is not None and (path := self._draft.path):
            self._guard(lambda: self._open("file", str(path)))

    # -- the cluster

    def explained(self) -> Sequence[str]:
        """Return the texts of the rules that the current job breaks."""
        from lumitui.app.runs.rulebook import explanations

        previews = self._checked.previews if self._checked else ()
        rules = dict.fromkeys(one.rule for each in previews for one in each.findings)
        return list(explanations(rules, [each.site for each in previews], EXPLAINED_WIDTH))

    def _asked_of(self, doing: str) -> tuple[Preview, ...]:
        """Return the runs to query about, and say so; () if the job file is invalid."""
        previews = self._checked.previews if self._checked else ()
        wrong = "Fix the job file before you query the cluster."
        self.notify(f"{doing} …" if previews else wrong, markup=False)
        return previews

    def action_ask_cluster(self) -> None:
        """Query the cluster about the current job."""
        if every := self._asked_of("Querying the cluster"):
            ask(self, lambda runs: runs.inquiries.of_preview(*every, fresh=True), self._answered)

    def action_places(self) -> None:
        """Compare the job's start at its own site and at those of newer runs."""
        every = self._asked_of("Checking when the job would start")
        draft, number = self._draft, self._asked
        if every and draft:
            ask(self, lambda runs: _places(runs, every[0], draft.folder),
                lambda places: self._offer_places(number, places))  # fmt: skip

    def _offer_places(self, number: int, places: tuple[StartPlace, ...]) -> None:
        from lumitui.app.tui.dialogs.start_dialog import StartDialog

        def chosen(place: StartPlace | None) -> None:
            if place is None or self._draft is None:
                return
            try:
                text = self._draft.text
                for key, value in place.changes.items():
                    text = set_key(text, place_of_key(key), None if value is None else str(value))
            except LumiError as error:
                show_error(self, error)
            else:
                self.query_one(DraftViews).write(text)

        if number == self._asked:  # the draft was not edited meanwhile
            self.app.push_screen(StartDialog(places), chosen)

    def _answered(self, found: Inquired) -> None:
        said = "\n".join(one.message for one in found.findings)
        self.notify(said or "The cluster reports no problems.", timeout=15, markup=False)
        self._check()  # the findings are beside their fields

    # -- send

    def action_submit(self) -> None:
        """Confirm, then send; wait for the check of the last edit."""
        checked, draft = self._checked, self._draft
        if draft is None:
            error = InputError("No job file has been read yet.", "Choose one first.")
            show_error(self, error)
            return
        self.query_one(CheckWait).begin()
        if checked and checked.draft.text == draft.text == self.query_one(TextEditor).text:
            self._end_wait(checked)
        else:
            self._check()

    def _end_wait(self, checked: CheckedDraft) -> None:
        """If a submit waits, open its question, which also tells whether the file differs."""
        wait = self.query_one(CheckWait)
        self._read_disk(lambda: wait.end(lambda: self._submit(checked)))

    def _submit(self, checked: CheckedDraft) -> None:
        if not checked.errors or may_be_forced(checked):
            self._confirm(checked)
        elif isinstance(self.focused, TextEditor):  # the errors are below the text
            self.query_one(DraftViews).open_line(checked.errors[0].at.line)
        else:
            self.notify(checked.errors[0].words, severity="error", markup=False)
            self.action_view("form")
            self.query_one(FieldList).open_wrong()

    def _confirm(self, checked: CheckedDraft) -> None:
        forced = bool(checked.errors)
        previews = tuple(replace(one, forced=forced) for one in checked.previews)
        first, several = previews[0], len(previews) > 1 or previews[0].cell
        changed = self._changed
        saves = self._edited_draft is not None and checked.draft.path is not None and not changed

        def answered(yes: bool | None) -> None:
            if not yes:
                return
            tui(self).sent = checked.draft.text
            if not (saves and self._save(None)) and self._edited_draft:
                words = "The job file is not saved. To save it, press 2, then ctrl+w."
                self.notify(words, timeout=15, markup=False)
            draft = self._draft or checked.draft  # it may be saved since the check
            note = draft.differs if self._changed or (draft.path and draft.unsaved) else ""
            sent = tuple(replace(one, note=note) for one in previews)
            if several:
                tui(self).sends.send_grid(sent)
            else:
                tui(self).sends.send(sent[0])

        name = styled.shorten(first.launch.spec.name, 40)
        if several:
            sites = site_names(one.site for one in previews)
            title = f"Submit {len(previews)} runs to {sites}?"
            lines = series_terms(previews)
            earlier = tui(self).runs.series.interrupted(str(first.job_file))
            if earlier and not previews[-1].follows:
                lines.append(("earlier", f"{earlier.sentence} This sends all runs again."))
        else:
            title, lines = f"Submit {name} to {first.launch.spec.site}?", terms(first, self._price)
        if forced:
            title = f"{title.removesuffix('?')} with {count(len(checked.errors), 'error')}?"
            lines = [*(("error", error.message) for error in checked.errors), *lines]
        lines += [("saves", checked.draft.name)] * saves
        if changed:
            told = f"{checked.draft.name} differs. This sends the text on the screen."
            lines = [("on disk", told), *lines]
        lines.append(("yes", f"sends the code and submits {count(len(previews), 'job')}"))
        label = "Submit anyway" if forced else "Submit"
        self.app.push_screen(Confirm(title, lines, label, no="Nothing was sent."), answered)


def path_of(text: str) -> Path:
    """Return the path that the user typed; `~` is the home folder."""
    return Path(os.path.expanduser(text))  # keeps `~nobody` unchanged


def _path(text: str) -> None:
    if not text:
        raise InputError("Type a path.", "lumitui saves the job file there.")


def _opened(runs: Runs, kind: Beginning, value: str) -> Draft:
    if kind == "file":
        return runs.drafts.open(Path(value))
    if kind == "script":
        return runs.drafts.script(Path(value))
    return runs.drafts.run(value) if kind == "run" else runs.drafts.example(value, Path.cwd())


def _checked(runs: Runs, draft: Draft) -> tuple[CheckedDraft, Outlook | None]:
    checked = runs.drafts.check(draft)
    return checked, runs.price_outlook(checked.previews[0]) if checked.previews else None


def _places(runs: Runs, preview: Preview, folder: Path) -> tuple[StartPlace, ...]:
    """Return the job's possible starts at its own site and at those of newer runs.

    Only a login at the job's own site may prompt the user.
    """
    spec = preview.launch.spec
    own = runs.start_places(spec, folder)
    others = {run.site: "" for run in runs.history.page(limit=_NEWER) if run.site != spec.site}
    slurms = {name: "" for name in others if _is_slurm(runs, name)}
    with attendance(False):
        return own + (runs.start_places(spec, folder, sites=slurms) if slurms else ())


def _is_slurm(runs: Runs, site: str) -> bool:
    try:
        return runs.sites.load(site).scheduler == "slurm"
    except InputError:
        return False  # the profile is missing
