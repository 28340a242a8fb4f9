"""The dialog for a cluster without a profile: survey a host, review the result, save it."""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, Label, Static

from lumitui.app.explain import words
from lumitui.app.runs import HostAddress, LumiError
from lumitui.app.tui.asking import ask
from lumitui.app.tui.dialogs.dialog_box import DialogBox, buttons
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.styled import labelled, plain

if TYPE_CHECKING:
    from lumitui.app.runs import WrittenProfile

FIELDS = {
    "host": "login node, or a host in ~/.ssh/config",
    "name": "its name in lumitui [default: the host's first word]",
    "partition": "only if nodes differ",
}
UNVERIFIED = "F5, a job of at most five minutes, measures a node: needed for `proved`."
GUESSES = {
    "work_root": "the folder of runs and code ({0.work_root})", "account": "the project",
    "node_folder": "the nodes' own disk", "node": "the GPU and its memory", "folders": "folders",
    "partitions": "prices", "billing_unit": "prices", "internet": "the nodes' internet",
    "python": "the nodes' Python", "containers": "how images start", "modules": "the module below",
    "default_container": "",
}  # fmt: skip
"""What was guessed, by the beginning of its key."""


def ssh_hosts(config: Path) -> list[str]:
    """Return the hosts in an ssh_config, without patterns."""
    try:
        lines = config.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    named = (line.split()[1:] for line in lines if line.strip().lower().startswith("host "))
    return [name for names in named for name in names if not set(name) & set("*?!")]


class NewClusterDialog(DialogBox[str | None]):
    """Surveys, then saves; returns the new site's name, or None if nothing was saved."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "save", "Save", priority=True, id="cluster.save",
                tooltip="Save the profile"),
        Binding("enter", "survey", "Survey", priority=True, id="cluster.survey",
                tooltip="Log in and query the cluster's Slurm once"),
    ]  # fmt: skip
    AUTO_FOCUS = "#host"
    KIND = "cluster"
    heading = "Another cluster"

    def __init__(self, host: str = "") -> None:
        super().__init__()
        self._host = host
        self._found: WrittenProfile | None = None
        self._hosts = ssh_hosts(Path.home() / ".ssh" / "config")

    def content(self) -> ComposeResult:
        """Yield three fields, the result, and three buttons."""
        if self._hosts:
            yield Static(plain(f"Your hosts: {', '.join(self._hosts[:12])}", "dim"))
        for field, said in FIELDS.items():
            suggester = SuggestFromList(self._hosts) if field == "host" else None
            begin = self._host if field == "host" else ""
            line = LineInput(begin, placeholder=said, id=field, compact=True, suggester=suggester)
            yield Horizontal(Label(f"{field:<10}"), line, classes="field")
        yield Static(id="found", markup=False)
        yield buttons(no="Close", survey="Survey", save="Save")

    def on_mount(self) -> None:
        """Disable saving until there is a result; survey the host at once if ssh knows it."""
        for save in self.query("#save"):
            save.disabled = True
            if self._host in self._hosts:
                self.action_survey()

    def _say(self, text: Text) -> None:
        self.query_one("#found", Static).update(text)

    @on(Input.Changed)
    def _typed(self) -> None:
        """Discard the result of a different host or name."""
        self._show(None)
        self._say(Text())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let enter press a focused button; else it saves what was found, or surveys."""
        if action in ("save", "survey"):
            own = isinstance(self.focused, Button) and self.focused.id != action
            return not own and (self._found is not None) == (action == "save")
        return True

    @on(Button.Pressed, "#survey")
    def action_survey(self) -> None:
        """Log in and query the cluster."""
        host, name, partition = (self.query_one(f"#{field}", Input).value.strip()
                                 for field in FIELDS)  # fmt: skip
        user, _, login = host.rpartition("@")
        name = name or login.partition(".")[0]
        address = HostAddress(login=login, user=user or None, port=None, ssh_config=None)
        if not login:
            self._say(Text("Type the login node first.", "yellow"))
            return
        self._say(Text(f"Logging in to {login} to query its Slurm once …"))
        ask(self,
            lambda runs: runs.surveys.describe(name, address, partition=partition, keep=False),
            self._show, failed=lambda error: self._say(plain(str(error), "bold red")), quietly=True,
            key="survey")  # fmt: skip

    def _show(self, found: "WrittenProfile | None") -> None:
        """Show a survey's results, guesses and omissions; the next press saves it."""
        self._found = found
        self.refresh_bindings()
        save = self.query_one("#save", Button)
        save.disabled = found is None
        if found is None:
            return
        node, queues = found.site.node, found.site.partitions
        guessed = [next((said for begin, said in GUESSES.items() if key.startswith(begin)), key)
                   for key in found.guessed]  # fmt: skip
        guesses = ", ".join(dict.fromkeys(filter(None, guessed))).format(found.site)
        lines = [
            ("found", f"{node.gpus} x {node.gpu} and {node.cores} cores per node"),
            ("", f"{words.count(len(queues), 'partition')}: {', '.join(queues)}"),
            ("guessed", guesses or "nothing"),
            *(("left out", one) for one in found.left_out),
            *((("software", found.image),) if found.image else ()),
            ("next", UNVERIFIED),
            ("writes", str(found.path)),
        ]
        self.query_one("#found", Static).update(labelled(lines))
        save.focus()

    @on(Button.Pressed, "#save")
    def action_save(self) -> None:
        """Save the profile, and return its name."""
        assert self._found is not None
        try:
            self.app.runs.surveys.save(self._found)  # type: ignore[attr-defined]  # LumiApp's
        except LumiError as error:
            self._say(plain(str(error), "bold red"))
        else:
            self.dismiss(self._found.site.name)
