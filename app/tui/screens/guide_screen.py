"""The first steps on one screen: the demo, or site, user, key, project, check and job.

The next step shows its effect or what is missing. Answers are saved, so the user can leave at any
step and continue later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from lumitui.app.runs import InputError, LumiError, Runs, Settings, Site, job_form, write_whole
from lumitui.app.runs.guide import (
    DEMO_FOLDER,
    FIRST_LINE,
    GuideStep,
    Surroundings,
    first_job,
    keep_progress,
    kept_progress,
    keys_in,
    missing,
    own_profile,
    own_script,
    prepare_demo,
    profile_text,
    steps,
)
from lumitui.app.tui.asking import ask, show_error, tui
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.choice_button import ChoiceButton
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.scroll import Scroll

if TYPE_CHECKING:
    from lumitui.app.runs import Finding

LEAVE = "your answers are kept"
DEMO = "Trains a small network here for a minute, on 2 CPU ranks. Contacts no cluster."
PLACES = (
    ("1 Runs", "every run with its state, loss and price; enter opens one"),
    ("2 New", "a job file as a form, with its script and its price"),
    ("3 Sites", "all clusters with a profile, and lumitui's requests to each"),
    ("4 Cluster", "idle nodes, your queue and your budget at a site"),
)
MARKS = {
    "done": ("✔", "green", ""), "next": ("▶", "bold magenta", "bold"), "later": ("·", "dim", "dim"),
}  # fmt: skip
"""The sign of a step, its style, and the style of the step's name, by state."""
TITLES = ("site", "user", "key", "project", "check", "job")
NOTHING = "choose …"
HOST = "a host of ~/.ssh/config: survey it"
ANOTHER = "another cluster …: survey it, and save a profile"
MEASURE = (
    "Optional: F5 measures a node with a job of at most five minutes, after you agree to its "
    "price. On whole nodes, lumitui then binds each rank to the cores near its GPU, and proves it."
)
LONGEST = 120
"""Maximum characters of a check's result: sbatch's errors have many lines."""


class GuideScreen(FullScreen):
    """The guide. It keeps no state: the answers are in their file."""

    AUTO_FOCUS = "#demo"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - as Textual types it
    BINDINGS: ClassVar[list[BindingType]] = [
        # The footer shows only the keys without a button.
        Binding("f2", "demo", "Demo", show=False, id="guide.demo",
                tooltip="Open the demo on this machine"),
        Binding("f3", "check", "Check", show=False, id="guide.check", tooltip="Check the site"),
        Binding("f4", "job", "Job", show=False, id="guide.job",
                tooltip="Create a first job for the site"),
        Binding("f5", "measure", "Measure", id="guide.measure",
                tooltip="Measure a node of the site with a short job; the price comes first"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, settings: Settings) -> None:
        """Continue at the step where the user stopped."""
        super().__init__(runs)
        self._settings = settings
        self._progress = kept_progress(settings)
        self._script = own_script(Path.cwd())
        self._keys = keys_in(Path.home() / ".ssh")
        self._checking = self._differs = False
        """Whether a check is running, and whether the last one found a difference."""

    def body(self) -> ComposeResult:
        """Yield the demo, a line for each step, and the other screens."""
        keys = [(str(key.path), key.path.name) for key in self._keys]
        fields: dict[str, Widget] = {
            "site": Button(Text(NOTHING), id="site", action="screen.site", compact=True),
            "user": LineInput(
                self._progress.user, placeholder="your name there", id="user", compact=True
            ),
            "key": ChoiceButton([("", NOTHING), *keys], id="key"),
            "project": LineInput(
                self._progress.account, placeholder="who pays", id="project", compact=True
            ),
            "check": _button("Check the site", "F3", "check"),
            "job": _button("Make a job", "F4", "job"),
        }
        with Scroll(id="guide"):
            with Vertical(id="steps"):
                with Vertical(classes="frame") as box:
                    box.border_title = "On this machine"
                    demo = _button("Demo", "F2", "demo")
                    yield Horizontal(Static("  demo", classes="mark"), demo, classes="step")
                    yield Static(DEMO, classes="words", markup=False)
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
        choice = self.query_one("#key", ChoiceButton)
        if self._progress.key in choice.offered:
            choice.choose(self._progress.key)
        self._choose_site(self._progress.site)

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
                self.app.push_screen(host, self._choose_site)

        self.app.push_screen(dialog, picked)

    def _choose_site(self, name: str | None) -> None:
        button = self.query_one("#site", Button)
        button.label = Text(name or self._progress.site or NOTHING)
        button.refresh(layout=True)
        if not name:
            self.reread()
            return
        self._answer(site=name)
        site, project = self._site(), self.query_one("#project", Input)
        if site and site.account.default and not project.value:
            project.value = site.account.default
        following = next(step.name for step in self._steps() if step.mark == "next")
        self.query_one(f"#step-{following}").children[1].focus()

    def _is_cluster(self, name: str) -> bool:
        try:
            site = self.runs.sites.load(name)
            return bool(site.hosts.login) and not site.is_closed(date.today())
        except InputError:
            return False  # the Sites screen shows its error

    def _site(self) -> Site | None:
        if not self._progress.site:
            return None
        try:
            return self.runs.sites.load(self._progress.site)
        except InputError:
            return None

    def _around(self) -> Surroundings:
        profile = own_profile(self._settings, self._progress.site or "NAME")
        foreign = profile.exists() and not _is_ours(profile)
        return Surroundings(self._site(), profile, foreign, self._keys, self._script)

    def _steps(self) -> tuple[GuideStep, ...]:
        return steps(self._progress, self._around())

    def draw(self) -> None:
        """Show the next step and its effect."""
        self.title_text("0 Guide")
        for name in ("user", "key"):
            self.query_one(f"#{name}").visible = not self._around().foreign
        for number, step in enumerate(self._steps(), 1):
            sign, style, name_style = MARKS[step.mark]
            if step.name == "check" and self._differs:
                sign, style = "!", "yellow"
            mark = Text.assemble((sign, style), (f" {number} {step.name}", name_style))
            self.query_one(f"#mark-{step.name}", Static).update(mark)
            words = self.query_one(f"#words-{step.name}", Static)
            words.update(styled.plain(step.words))
            words.display = step.mark == "next"

    def _answer(self, **answers: object) -> None:
        """Store answers; a changed site, name or key needs a new check."""
        changed = self._progress.model_copy(update=answers)
        if answers.keys() & {"site", "user", "key", "account"} and changed != self._progress:
            changed, self._differs = changed.model_copy(update={"checked": False}), False
            self.query_one("#results").display = False
        self._progress = changed
        try:
            keep_progress(self._settings, changed)
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

    @on(Input.Submitted)
    def _entered(self) -> None:
        self.focus_next()

    def _stop_at(self, step: str) -> bool:
        """Show the step that `step` still requires; return whether one is missing."""
        lacking = missing(self._steps(), step)
        if lacking:
            words = next(found.words for found in self._steps() if found.name == lacking)
            message = f"The step `{lacking}` comes first."
            show_error(self, InputError(message, words))
        return bool(lacking)

    def action_check(self) -> None:
        """Write the profile, if the guide created it, and check the site."""
        if self._checking or self._stop_at("check"):
            return
        around = self._around()
        try:
            if not around.foreign:
                around.profile.parent.mkdir(parents=True, exist_ok=True)
                write_whole(around.profile, profile_text(self._progress))
        except OSError as error:
            failure = LumiError(
                f"{around.profile} cannot be written: {error.strerror}.", "Check its folder."
            )
            show_error(self, failure)
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
        self._checking = False
        self._show_results(styled.plain(f"failed: {error}", "bold red"))

    def _checked(self, checks: list[Finding]) -> None:
        self._checking = False
        text = check_text(checks)
        if (site := self._site()) and not site.node.gpu_cores:
            text.append("\n").append(styled.plain(MEASURE))
        self._show_results(text)
        self._differs = any(check.severity == "error" for check in checks)
        # The user judges a difference: lumitui sends nothing without confirmation.
        self._answer(checked=True)

    def action_measure(self) -> None:
        """Measure a node of the site, so that lumitui can bind ranks and prove the binding."""
        if not self._stop_at("job"):
            site, account = self._progress.site, self._progress.account
            tui(self).measure(self, site, account, self.reread)

    def action_demo(self) -> None:
        """Open the demo's job on the New screen."""
        self._open(lambda: prepare_demo(Path.cwd() / DEMO_FOLDER), demo=True)

    def action_job(self) -> None:
        """Create a first job for the site, and open it on the New screen."""
        site = self._site()
        if not self._stop_at("job") and site is not None:
            self._open(lambda: first_job(site, self._progress.account, Path.cwd(), self._script))

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
            return file.readline(200).strip() == FIRST_LINE
    except OSError:
        return False
