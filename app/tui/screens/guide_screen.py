"""The first steps on one screen: the demo, or site, user, key, project, check and job.

The cursor starts at the next step and shows its effect or what is missing. Answers are saved, so
the user can leave at any step and continue later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, ScrollableContainer, Vertical
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from lumitui.app.runs import InputError, LumiError, Runs, guide, job_form, write_whole
from lumitui.app.tui.asking import ask, show_error, tui
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.choice_button import ChoiceButton
from lumitui.app.tui.widgets.input import LineInput

if TYPE_CHECKING:
    from lumitui.app.runs import Finding, Settings, Site

LEAVE = "your answers are kept"
DEMO = "Trains a small network here for a minute. Contacts no cluster."
NO_DEMO = "Trains here for a minute, but this Python lacks PyTorch."
PLACES = (
    ("1 Runs", "every run with its state, loss and price; enter opens one"),
    ("2 New", "a job file as a form, with its script and its price"),
    ("3 Sites", "all clusters with a profile, and lumitui's requests to each"),
    ("4 Cluster", "idle nodes, your queue and your budget at a site"),
    ("proved", "needs whole nodes, and a measured node of the site (step 6)"),
)
HERE = ("▶", "bold magenta")
"""The sign of the cursor's row, and its style."""
MARKS = {"done": ("✔", "green", ""), "next": ("·", "", "bold"), "later": ("·", "dim", "dim")}
"""The sign of a step, its style, and the style of the step's name, by state."""
TITLES = ("site", "user", "key", "project", "check", "measure", "job")
NOTHING = "choose …"
HOST = "a host in ~/.ssh/config: survey it"
ANOTHER = "another cluster …: survey it, and save a profile"
LONGEST = 120
"""Maximum characters of a check's result: sbatch's errors have many lines."""


class GuideScreen(FullScreen):
    """The guide. It keeps no state: the answers are in their file."""

    AUTO_FOCUS = ""  # the next step, which `begin` focuses
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - as Textual types it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move('next')", "Down", show=False, priority=True,
                id="guide.down", tooltip="Next row"),
        Binding("up", "move('previous')", "Up", show=False, priority=True, id="guide.up",
                tooltip="Previous row"),
        # The buttons show these keys.
        Binding("f2", "demo", "Demo", show=False, id="guide.demo",
                tooltip="Open the demo on this machine"),
        Binding("f3", "check", "Check", show=False, id="guide.check", tooltip="Check the site"),
        Binding("f4", "job", "Job", show=False, id="guide.job",
                tooltip="Create a first job for the site"),
        Binding("f5", "measure", "Measure", show=False, id="guide.measure",
                tooltip="Measure a node of the site with a short job; shows the price first"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, settings: Settings) -> None:
        """Continue at the step where the user stopped."""
        super().__init__(runs)
        self._settings = settings
        self._progress = guide.kept_progress(settings)
        self._script = guide.own_script(Path.cwd())
        self._keys = guide.keys_in(Path.home() / ".ssh")
        self._here = ""  # the row of the cursor
        self._checking = self._differs = False
        """Whether a check is running, and whether the last one found a difference."""
        self._then = ""  # the step to continue with after the check

    def body(self) -> ComposeResult:
        """Yield the demo, a line for each step, and the other screens."""
        kept, keys = self._progress, [(str(key.path), key.path.name) for key in self._keys]
        fields: dict[str, Widget] = {
            "site": Button(Text(NOTHING), id="site", action="screen.site", compact=True),
            "user": LineInput(kept.user, placeholder="your user name", id="user", compact=True),
            "key": ChoiceButton([("", NOTHING), *keys], id="key"),
            "project": LineInput(kept.account, placeholder="who pays", id="project", compact=True),
            "check": _button("Check the site", "F3", "check"),
            "measure": _button("Measure a node", "F5", "measure"),
            "job": _button("Create a job", "F4", "job"),
        }
        with ScrollableContainer(id="guide"):
            with Vertical(id="steps"):
                with Vertical(classes="frame") as box:
                    box.border_title = "On this machine"
                    demo = _button("Demo", "F2", "demo")
                    mark = Static(id="mark-demo", classes="mark", markup=False)
                    yield Horizontal(mark, demo, classes="step")
                    yield Static(
                        DEMO if guide.has_torch() else NO_DEMO, classes="words", markup=False
                    )
                with Vertical(classes="frame", id="cluster") as box:
                    box.border_title, box.border_subtitle = "On a cluster", LEAVE
                    for name in TITLES:
                        mark = Static(id=f"mark-{name}", classes="mark", markup=False)
                        yield Horizontal(mark, fields[name], classes="step", id=f"step-{name}")
                        yield Static(id=f"words-{name}", classes="words", markup=False)
                    yield Static(id="results", markup=False)
            with Vertical(classes="frame", id="then") as box:
                box.border_title = "Then"
                for name, words in PLACES:
                    yield Horizontal(Static(name, classes="mark"), Static(words, classes="dim"))

    def begin(self) -> None:
        """Show the stored answers."""
        self._choose_site(self._progress.site)
        self._go_on()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Move the cursor to the row of the focused field."""
        self._here = event.widget.id or ""
        self.reread()

    def action_move(self, way: str) -> None:
        (self.focus_next if way == "next" else self.focus_previous)("Button, Input")

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        if not self._stop_at(event.input.id or ""):
            self._go_on()

    def _go_on(self) -> None:
        name = next(step.name for step in self._steps() if step.mark == "next")
        self.query_one(f"#{name}").focus()

    def action_site(self) -> None:
        """Offer the clusters, the user's own first, and a survey of another one."""
        from lumitui.app.tui.dialogs.new_cluster import NewClusterDialog, ssh_hosts
        from lumitui.app.tui.dialogs.pick import PickDialog

        own, everyone = self.runs.sites.own(), self.runs.sites.names()
        found = ssh_hosts(Path.home() / ".ssh" / "config")
        names = list(filter(self._is_cluster, everyone))
        choices = [
            *(job_form.FieldChoice(name) for name in names if name in own),
            *(job_form.FieldChoice(host, HOST) for host in found if host not in everyone),
            *(job_form.FieldChoice(name) for name in names if name not in own),
        ]
        dialog = PickDialog("A cluster", choices, self._progress.site, ANOTHER)

        def picked(name: str | None) -> None:
            if name is None or name in everyone:
                self._choose_site(name)
            else:
                host = NewClusterDialog(name or dialog.typed)
                self.app.push_screen(host, lambda new: self._choose_site(new, surveyed=True))

        self.app.push_screen(dialog, picked)

    def _choose_site(self, name: str | None, *, surveyed: bool = False) -> None:
        """Store the site; a survey has just logged in, which counts as the check."""
        button = self.query_one("#site", Button)
        button.label = Text(name or self._progress.site or NOTHING)
        button.refresh(layout=True)
        if not name:
            self._show_login(("", ""))
            return
        self._answer(site=name)
        self._show_login(("", ""))
        site, project = self._loaded(self._progress.site), self.query_one("#project", Input)
        if site and site.account.default and not project.value:
            project.value = site.account.default
            self._answer(account=site.account.default)
        if surveyed:
            self._answer(checked=True)
        self._go_on()

    def _show_login(self, login: tuple[str, str]) -> None:
        """Show user and key: the answers, or what the user's own profile and ssh say (`login`)."""
        user, key = self.query_one("#user", Input), self.query_one("#key", ChoiceButton)
        around = self._around()
        user.disabled = key.disabled = around.foreign
        with self.prevent(Input.Changed):
            user.value = login[0] if around.foreign else self._progress.user
        own = (str(one.path) for one in self._keys if str(one.path) == self._progress.key)
        key.choose(next(own, ""))
        if around.foreign:
            key.label = Text(login[1])
        if around.foreign and (site := around.site) and not any(login):
            ask(self, lambda _: guide.login_of(site), self._show_login, quietly=True, key="login")

    def _is_cluster(self, name: str) -> bool:
        site = self._loaded(name)  # the Sites screen shows why it cannot be read
        return site is not None and bool(site.hosts.login) and not site.is_closed(date.today())

    def _loaded(self, name: str) -> Site | None:
        with suppress(InputError):
            return self.runs.sites.load(name)
        return None

    def _around(self) -> guide.Surroundings:
        name = self._progress.site
        site, run = self._loaded(name), self.runs.surveys.under_way(name)
        profile = self._settings.profiles[0] / f"{name or 'NAME'}.yaml"  # it may not exist yet
        foreign = profile.exists() and not _is_ours(profile)
        return guide.Surroundings(site, profile, foreign, self._keys, self._script, run)

    def _steps(self) -> tuple[guide.GuideStep, ...]:
        return guide.steps(self._progress, self._around())

    def draw(self) -> None:
        """Show the steps, and the effect of the cursor's."""
        self.title_text("0 Guide")
        demo = Text.assemble(HERE if self._here == "demo" else " ", " demo")
        self.query_one("#mark-demo", Static).update(demo)
        for number, step in enumerate(self._steps(), 1):
            sign, style, name_style = MARKS[step.mark]
            if step.name == "check" and self._differs:
                sign, style = "!", "yellow"
            if step.name == self._here:
                sign, style = HERE
            mark = Text.assemble((sign, style), (f" {number} {step.name}", name_style))
            self.query_one(f"#mark-{step.name}", Static).update(mark)
            words = self.query_one(f"#words-{step.name}", Static)
            words.update(styled.plain(step.words))
            words.display = step.name == self._here

    def _answer(self, **answers: object) -> None:
        """Store answers; a changed site, name or key needs a new check."""
        changed = self._progress.model_copy(update=answers)
        if answers.keys() & {"site", "user", "key", "account"} and changed != self._progress:
            changed, self._differs = (
                changed.model_copy(update={"checked": False, "space": ""}),
                False,
            )
            self.query_one("#results").display = False
        self._progress = changed
        try:
            guide.keep_progress(self._settings, changed)
        except OSError as error:
            warning = f"Could not save your answers: {self._settings.guide}: {error.strerror}."
            self.notify(warning, severity="warning", markup=False)
        self.reread()

    @on(Button.Pressed, ".choice")
    def _chosen(self, event: Button.Pressed) -> None:
        choice = event.button
        assert isinstance(choice, ChoiceButton)
        choice.turn()
        self._answer(**{str(choice.id): choice.value})

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        field = "account" if event.input.id == "project" else "user"
        if getattr(self._progress, field) != event.value.strip():
            self._answer(**{field: event.value.strip()[:200]})

    def _stop_at(self, step: str) -> bool:
        """Show the step that `step` still requires; return whether one is missing.

        lumitui does a missing check, then continues with `step`.
        """
        lacking = guide.missing(self._steps(), step)
        if lacking == "check":
            self._then = step
            self.action_check()
        elif lacking:
            words = next(found.words for found in self._steps() if found.name == lacking)
            show_error(self, InputError(f"Complete the step `{lacking}` first.", words))
            self._go_on()
        return bool(lacking)

    def action_check(self) -> None:
        """Write the profile, if the guide created it, and check the site."""
        if self._checking or self._stop_at("check"):
            return
        around = self._around()
        try:
            if not around.foreign:
                around.profile.parent.mkdir(parents=True, exist_ok=True)
                write_whole(around.profile, guide.profile_text(self._progress, around.profile))
        except OSError as error:
            message = f"{around.profile} cannot be written: {error.strerror}."
            show_error(self, LumiError(message, "Check its folder."))
            return
        self._checking = True
        self._show_results(Text(f"Logging in to {self._progress.site} …"))
        site, account = self._progress.site, self._progress.account
        ask(self, lambda runs: runs.doctor(site, account), self._checked,
            failed=self._not_checked, quietly=True)  # fmt: skip

    def _show_results(self, text: Text) -> None:
        results = self.query_one("#results", Static)
        results.display = True
        results.update(text)

    def _not_checked(self, error: LumiError) -> None:
        self._checking, self._then = False, ""
        self._show_results(styled.plain(f"failed: {error}", "bold red"))

    def _checked(self, checks: list[Finding]) -> None:
        self._checking, then, self._then = False, self._then, ""
        self._show_results(check_text(checks))
        self._differs = any(check.severity == "error" for check in checks)
        space = next((one.message for one in checks if one.rule == "work root"), "")
        # The user judges a difference: lumitui sends nothing without confirmation.
        self._answer(checked=True, space=space[:1000])
        self._go_on()
        if then and not self._differs:
            self.call_later(self.run_action, f"screen.{then}")

    def action_measure(self) -> None:
        """Measure a node of the site, so that lumitui can bind ranks and prove the binding."""
        if not self._stop_at("measure"):
            self.query_one("#measure").focus()
            site, account = self._progress.site, self._progress.account
            tui(self).measure(self, site, account, self._go_on)

    def action_demo(self) -> None:
        """Open the demo's job on the New screen."""
        self._open(lambda: guide.prepare_demo(Path.cwd() / guide.DEMO_FOLDER), demo=True)

    def action_job(self) -> None:
        """Create a first job for the site, and open it on the New screen."""
        site, account = self._loaded(self._progress.site), self._progress.account
        if not self._stop_at("job") and site is not None:
            self._open(lambda: guide.first_job(site, account, Path.cwd(), self._script))

    def _open(self, make: Callable[[], Path], *, demo: bool = False) -> None:
        try:
            job = make()
        except LumiError as error:
            show_error(self, error)
            return
        tui(self).open_job(job, demo=demo)


def check_text(checks: Sequence[Finding]) -> Text:
    """Return how many facts match the profile, and each that does not, the worst first."""
    space = [one for one in checks if (one.rule, one.severity) == ("work root", "warning")]
    facts = [one for one in checks if one not in space]  # free space is not in the profile
    good = sum(one.severity == "note" for one in facts)
    text = Text(f"{good} of {len(facts)} facts match the profile.")
    for word, severity, style in (("failed", "error", "bold red"), ("warning", "warning", "bold")):
        for check in (one for one in checks if one.severity == severity):
            message = styled.shorten(" ".join(check.message.split()), LONGEST)
            text.append("\n").append(styled.plain(f"{word}: {check.rule}: {message}. ", style))
            text.append(styled.plain(check.do))
    return text


def _button(words: str, key: str, action: str) -> Button:
    label = Text.assemble(words, (f" {key}", "not bold dim"))
    return Button(label, id=action, action=f"screen.{action}", compact=True)


def _is_ours(profile: Path) -> bool:
    """Return whether the guide wrote the profile, so that it may overwrite it."""
    try:
        with profile.open(encoding="utf-8", errors="replace") as file:
            return file.readline(200).strip() == guide.FIRST_LINE
    except OSError:
        return False
