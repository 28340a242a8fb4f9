"""The dialog for a resubmission on one or several sizes, with its changes."""

import re
import shlex
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import ClassVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Button, Input, Label, OptionList, Static

from lumitui.app.explain.words import count
from lumitui.app.runs import (
    MOST_NODES,
    CodeChoice,
    CodeNews,
    InputError,
    LumiError,
    Resubmission,
    Run,
    Scaling,
    ScalingQuestion,
    StartPoint,
    apply_settings,
    code_words,
    ladder_terms,
    problem_of,
    rungs,
)
from lumitui.app.tui.asking import ask
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.dialog_box import DialogBox, buttons
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.check_wait import CheckWait
from lumitui.app.tui.widgets.choice_button import ChoiceButton
from lumitui.app.tui.widgets.input import FigureInput, LineInput
from lumitui.app.tui.widgets.launch_text import error_terms, findings_text, terms
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.tables.size_ladder import SizeLadder

Outcome = Resubmission | LumiError
"""A plan, or the error that prevents it."""


class ResubmitDialog(DialogBox[tuple[Resubmission, ...] | None]):
    """A ladder of sizes with their costs, and the changes of the selected one.

    It sends the marked sizes or, without marks, the size in the field, and never a size whose plan
    is not on the screen.
    """

    AUTO_FOCUS = "#nodes"
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]  # noqa: RUF012 - as Textual types it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "Send", show=False, id="resubmit.send",
                tooltip="Send the run, after confirmation"),
        Binding("down", "sizes", "Sizes", show=False, id="resubmit.sizes",
                tooltip="Go to the sizes; space marks several"),
        Binding("space", "mark", "Mark", show=False, id="resubmit.mark",
                tooltip="Mark the size in the field, and go to the sizes"),
        Binding("question_mark", "app.help", "Help", key_display="?", id="resubmit.help",
                tooltip="Show the keys that work here"),
        Binding("ctrl+o", "code", "Code", id="resubmit.code",
                tooltip="Send the code of this run, or the project's current code"),
        Binding("ctrl+n", "name", "Set scale", id="resubmit.name",
                tooltip="Set `scale`: the arguments for batch size and learning rate"),
    ]  # fmt: skip
    KIND = "resubmit"
    subtitle = "↑↓ choose a size, space marks several"

    def __init__(
        self, parent: Run, nodes: int, settings: tuple[str, ...] = (), followers: Sequence[str] = ()
    ) -> None:
        """Send `parent` again on `nodes` nodes, with `settings` as `key=value`.

        The runs `followers` ran after it; the user may resubmit them with it.
        """
        super().__init__()
        self._followers = followers
        self.takes_followers = False
        self._parent_run, self._asked = parent, nodes
        self.heading = f"Resubmit {parent.id}"
        self._own = {"time": parent.spec.time, "args": shlex.join(parent.spec.args)}
        self._spec = apply_settings(parent.spec, settings) if settings else parent.spec
        self._given = tuple(one for one in settings if not one.startswith(("time=", "-")))
        self._number = 0
        """Version of the settings common to all sizes: plans for earlier versions are dropped."""
        self._start: StartPoint | None = None
        self._plans: dict[int, Outcome] = {}
        self._wanted: set[int] = set()  # the sizes with requested plans
        self._basis = ""
        self.study: Scaling | None = None
        """The speed and the price of each size, once known."""
        self._code_chosen = False  # whether the user chose the code
        self._news: CodeNews | None = None
        """The project's changes since the run; nothing is sent before they are known."""

    def content(self) -> ComposeResult:
        """Yield the fields, the sizes, the changes, and two buttons."""
        with Horizontal(classes="fields"):
            yield Label("nodes ", id="of-nodes")
            yield FigureInput(str(self._asked), type="integer", id="nodes", compact=True)
            yield Label("time ")
            yield FigureInput(self._spec.time, id="time", compact=True)
            starts = [("scratch", "from scratch"), ("checkpoint", "from checkpoint")]
            yield ChoiceButton(starts, id="start")
            yield ChoiceButton([("same", "same code"), ("current", "current code")], id="code")
            if self._followers:
                yield ChoiceButton[bool]([(False, "alone"), (True, "and what followed")], id="then")
        with Horizontal(classes="fields args"):
            yield Label("args  ")
            yield LineInput(
                shlex.join(self._spec.args), id="args", compact=True, select_on_focus=False
            )
        yield Static(id="titles", markup=False)
        yield SizeLadder(id="ladder")
        with Scroll(id="plan"):
            yield Static("Planning …", id="changes", markup=False)
        yield CheckWait(classes="wait", markup=False)
        yield buttons(no="Close", yes="Send")

    def on_mount(self) -> None:
        """Make the first plan, with the run's own settings, and request each size's cost."""
        if self.query("#nodes"):
            # The plan is laid out after its text has changed, and again if it gets a bar.
            for name in ("scroll_y", "virtual_size", "show_vertical_scrollbar"):
                self.watch(self.query_one("#plan"), name, self._mark_rest)
            self._settings_changed()
            ask(self, lambda runs: runs.code_news(self._parent_run.id), self._compared,
                failed=lambda _: self._compared(CodeNews()))  # fmt: skip

    # -- the requested plans

    @property
    def _typed(self) -> int | None:
        """The number of nodes in the field."""
        text = self.query_one("#nodes", Input).value
        return int(text) if text.isdecimal() and len(text) < 10 else None

    @property
    def _code(self) -> CodeChoice:
        """The code that would be sent."""
        code: CodeChoice = self.query_one("#code", ChoiceButton).value
        return code

    @property
    def _to_send(self) -> list[int]:
        """The sizes that would be sent."""
        marked = sorted(self.query_one(SizeLadder).marked)
        return marked or ([] if self._typed is None else [self._typed])

    @on(Input.Changed, "#time, #args")
    def _settings_changed(self) -> None:
        self._number += 1
        self._plans.clear()
        self._wanted.clear()
        self._request_plans()
        run_id, studied = self._parent_run.id, partial(self._studied, self._number)
        question = ScalingQuestion(
            (self._asked,),
            settings=self._settings,
            as_sent=True,
            other_code=self._code == "current" and bool(self._news and self._news.differs),
            resumes=self._start == "checkpoint",
        )
        self.study = None
        # Quietly, because the plan shows the error.
        ask(self, lambda runs: runs.scaling.of(run_id, question), studied, quietly=True)

    @property
    def _settings(self) -> tuple[str, ...]:
        """The changes, as `key=value`."""
        typed = {key: self.query_one(f"#{key}", Input).value.strip() for key in self._own}
        changed = (f"{key}={text}" for key, text in typed.items() if text != self._own[key])
        return (*self._given, *changed)

    @on(SizeLadder.Marked)
    def _request_plans(self) -> None:
        """Request the missing plans for the displayed size and the sizes to send."""
        shown = [] if self._typed is None else [self._typed]
        for nodes in sorted({*shown, *self._to_send} - self._wanted):
            self._plan(nodes)
        self._draw()

    def _plan(self, nodes: int) -> None:
        self._wanted.add(nodes)
        run_id, start, number = self._parent_run.id, self._start, self._number
        settings, code = self._settings, self._code

        def planned(outcome: Outcome) -> None:
            if number == self._number:
                self._plans[nodes] = outcome
                self._draw()

        # Quietly, because the error is below its field.
        ask(self, lambda runs: runs.plan_resubmission(run_id, nodes=nodes, settings=settings,
                                                      code=code, start=start),
            planned, failed=planned, quietly=True)  # fmt: skip

    @on(Input.Changed, "#nodes")
    def _nodes_changed(self) -> None:
        self.query_one(SizeLadder).point_at(self._typed)
        self._request_plans()

    @on(OptionList.OptionHighlighted)
    def _size_chosen(self) -> None:
        ladder = self.query_one(SizeLadder)
        if ladder.chosen is not None and ladder.has_focus:
            self.query_one("#nodes", Input).value = str(ladder.chosen)

    @on(Button.Pressed, ".choice")
    def _chosen(self, event: Button.Pressed) -> None:
        event.stop()
        assert isinstance(event.button, ChoiceButton)
        event.button.turn()
        if event.button.id == "start":
            self._start = event.button.value
        self._code_chosen |= event.button.id == "code"
        if event.button.id == "then":
            self.takes_followers = event.button.value
        self._settings_changed()

    def action_code(self) -> None:
        """Switch to the other code."""
        self.query_one("#code", ChoiceButton).press()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Show the key that names the arguments only while the plan proposes them."""
        plan = self._plans.get(self._typed or 0) if self.query("#nodes") else None
        return action != "name" or bool(isinstance(plan, Resubmission) and plan.naming)

    def action_name(self) -> None:
        """Name the script's arguments for the batch and the rate, if the plan proposes any."""
        plan = self._plans.get(self._typed or 0)
        if isinstance(plan, Resubmission) and plan.naming:
            self._given += plan.naming[:1]
            self._settings_changed()
            named = apply_settings(plan.preview.launch.spec, plan.naming)
            self.query_one("#args", Input).value = shlex.join(named.args)

    # -- the received plans

    def _compared(self, news: CodeNews) -> None:
        self._news, code = news, self.query_one("#code", ChoiceButton)
        if self._code_chosen or news.first == code.value:
            self._draw()
        else:
            code.choose(news.first)
            self._settings_changed()

    def _studied(self, number: int, found: Scaling) -> None:
        if number == self._number:
            self.study = found
            self._basis, ladder = rungs.basis(found), self.query_one(SizeLadder)
            ladder.show(rungs.rungs_of(found), rungs.titles(found), self._typed)
            self.on_resize()

    def _draw(self) -> None:
        """Show the plan for the size in the field, and the button's action."""
        self.refresh_bindings()
        nodes, button = self._typed, self.query_one("#yes", Button)
        shown = self._plans.get(nodes or 0)
        if nodes is None:
            shown = _no_number(self.query_one("#nodes", Input).value.strip())
        if isinstance(shown, Resubmission):
            self.query_one("#start", ChoiceButton).choose(shown.plan.start)
        # If other sizes are marked, the field only selects the plan to show.
        sent = nodes is None or nodes in self._to_send
        self.query_one("#of-nodes", Label).update("nodes " if sent else "shown ")
        parts: list[RenderableType] = []
        if self._news and self._news.differs:
            words = f"This sends {code_words(self._parent_run, self._code)}."
            parts.append(styled.plain(f"{self._news.sentence} {words}", "bold yellow"))
        if self._followers:
            fate = "is" if len(self._followers) == 1 else "are"
            fate += " resubmitted." if self.takes_followers else " not resubmitted."
            words = f"note  {', '.join(self._followers)} followed it and {fate}"
            parts.append(styled.plain(words, "cyan"))
        if self.takes_followers and len(self._to_send) > 1:
            words = "The runs that followed can be resubmitted at one size only."
            parts.append(styled.plain(words, "bold red"))
        parts += self._refusals(besides=nodes)
        if len(ready := self._ready_plans()) > 1:
            price = dict(ladder_terms(ready, self.study))["in all"]
            parts.append(Text(f"{count(len(ready), 'size')} marked, {price} in all"))
        parts += [] if shown is None else [self._described(shown)]
        if parts:
            self.query_one("#changes", Static).update(Group(*parts))
            self.call_after_refresh(self._mark_rest)
        sizes = ", ".join(f"{size:,}" for size in self._to_send)
        words = f"Send on {sizes} node{'s' * (self._to_send != [1])} " if ready else "Send "
        button.label = Text.assemble(words, ("^s", "not bold"))
        button.disabled = not ready
        button.refresh(layout=True)
        if not self._plans_missing:
            self.query_one(CheckWait).end(self._ask_yes)

    @property
    def _plans_missing(self) -> bool:
        return self._news is None or any(size not in self._plans for size in self._to_send)

    def _mark_rest(self) -> None:
        """Mark in the frame whether the plan goes on below its last visible line."""
        plan = self.query_one("#plan")
        more = "▾ more below  " if plan.scroll_y < plan.max_scroll_y else ""
        self.query_one(".dialog").border_subtitle = more + self.subtitle

    def _described(self, outcome: Outcome) -> RenderableType:
        if isinstance(outcome, LumiError):
            lines = [item.words for item in problem_of(outcome, None)]
            return Text("\n").join(styled.plain(line, "bold red") for line in lines)
        return described(outcome, self._basis, self.app.size.width)

    def on_resize(self) -> None:
        """Lay the columns out for this width."""
        if self.query("#titles"):
            heading = self.query_one(SizeLadder).heading()
            self.query_one("#titles", Static).update(Text(heading, "dim"))
            self._draw()

    def _refusals(self, besides: int | None) -> Iterator[Text]:
        """Yield the errors of the other marked sizes, each error once."""
        reasons: dict[str, list[str]] = {}
        for size in self._to_send:
            plan = self._plans.get(size) if size != besides else None
            if isinstance(plan, LumiError):
                words = " ".join(item.words for item in problem_of(plan, None))
                reasons.setdefault(words, []).append(f"{size:,}")
            elif plan and plan.preview.errors:
                first = plan.preview.errors[0]
                reasons.setdefault(f"{first.message} {first.do}", []).append(f"{size:,}")
        for reason, sizes in reasons.items():
            nodes = ", ".join(sizes) + (" node" if sizes == ["1"] else " nodes")
            yield styled.plain(f"{nodes}: {reason}", "bold red")

    def _ready_plans(self) -> tuple[Resubmission, ...]:
        """Return the plans to send; empty while one is missing or invalid."""
        plans = [self._plans.get(size) for size in self._to_send]
        ready = [plan for plan in plans if isinstance(plan, Resubmission)]
        if self._news is None or (self.takes_followers and len(plans) > 1):
            return ()
        final = any(error.final for plan in ready for error in plan.preview.errors)
        return tuple(ready) if len(ready) == len(plans) and not final else ()

    # -- keys and buttons

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _ready(self) -> None:
        self.query_one("#yes").focus()

    def action_sizes(self) -> None:
        """Go from the fields to the sizes."""
        self.query_one(SizeLadder).focus()

    def action_mark(self) -> None:
        """Mark the size in the field, and go to the sizes."""
        self.action_sizes()
        self.query_one(SizeLadder).action_mark()

    @on(Button.Pressed, "#yes")
    def action_send(self) -> None:
        """Send the valid plans, once all are made."""
        if self._to_send and self._plans_missing:
            self.query_one(CheckWait).begin()
        else:
            self._ask_yes()

    def _ask_yes(self) -> None:
        """Send the valid plans after a yes, which for several runs follows the dialog."""
        plans = self._ready_plans()
        lines = errors = error_terms(tuple(plan.preview for plan in plans))
        if len(plans) == 1 and not self.takes_followers:
            launch, found = plans[0].plan.launch, self.study
            price = rungs.outlook_of(found, self._parent_run, launch) if found else None
            lines = [*errors, *terms(plans[0].preview, price), ("yes", "submits 1 job")]

        def answered(yes: bool | None) -> None:
            if yes:
                self.dismiss(tuple(plan.forced(bool(errors)) for plan in plans))

        if lines:
            despite = f", despite {count(len(errors), 'error')}" if errors else ""
            title = f"Send {self._parent_run.id} again with {plans[0].code_sent}{despite}?"
            label = "Send anyway" if errors else "Send"
            self.app.push_screen(Confirm(title, lines, label, no="Nothing was sent."), answered)
        elif plans:
            self.dismiss(plans)
        else:
            words = "Nothing was sent. The reason is below the sizes, in red."
            self.notify(words, severity="error", markup=False)


def _no_number(text: str) -> InputError:
    """Return the error for an invalid node count."""
    if not text:
        return InputError("The number of nodes is missing.", "Type one.")
    return InputError(f"{text} is not a number of nodes.", f"Type 1 to {MOST_NODES:,}.")


def changed_options(before: str, after: str) -> tuple[str, str]:
    """Return the options whose values differ between two lists of arguments."""
    old, new = (re.split(r" (?=-)", text) for text in (before, after))
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [step for step in steps if step[0] != "equal"]
    return (" ".join(option for _, i, j, _, _ in changed for option in old[i:j]),
            " ".join(option for _, _, _, i, j in changed for option in new[i:j]))  # fmt: skip


def described(made: Resubmission, basis: str, width: int) -> RenderableType:
    """Return the changes, their effect on the training, and the adviser's findings."""
    plan, table = made.plan, Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(max_width=min(100, width) // 2 - 12, overflow="fold")
    table.add_column(overflow="fold")
    table.add_row(*(Text(title, style="dim") for title in ("", "before", "after")))
    changed = [change for change in plan.changes if change.differs]
    for change in changed:
        before, after = change.before, change.after
        if change.what == "arguments":
            before, after = changed_options(before, after)
        cells = styled.plain(before), styled.plain(after, "bold yellow")
        table.add_row(Text(change.what, style="dim"), *cells)
    if plan.parent.snapshot and plan.request.code == "current":
        old = Text(code_words(plan.parent, "same"))
        table.add_row(Text("code", style="dim"), old, Text(made.code_sent, "bold yellow"))
    elif not changed:
        table.add_row(Text("settings", style="dim"), Text("all the same"))
    notes = [styled.plain(f"note  {note}", "cyan") for note in plan.notes]
    findings = findings_text(made.preview) if made.preview.findings else []
    name = f" Press ^n to set `{made.naming[0]}`." if made.naming else ""
    said = [Text(), styled.plain(made.effect + name)] if made.effect else []
    rest = [styled.plain(basis, "dim")] if basis else []
    if made.preview.errors:  # what prevents the send comes first
        return Group(*findings, table, *said, *notes, *rest)
    return Group(table, *said, *notes, *findings, *rest)
