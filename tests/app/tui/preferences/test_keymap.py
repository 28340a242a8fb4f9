"""A person's own keys; a line that means nothing is one warning that names it."""

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.widgets import Input

from lumitui.app import tui
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.palette import other_words
from lumitui.app.tui.preferences.keymap import _known, read_keymap
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import keys_below, sees, shown, until

SEVERAL = {
    "n": {"Next match", "New"},
}
"""Letters that mean something else on another screen: a log has that of less. The table may only
shrink."""


def letters(parent: type[DOMNode]) -> Iterator[tuple[str, str]]:
    """Yield each letter of ours outside of dialogs, with what it does."""
    for cls in parent.__subclasses__():
        if cls.__module__.startswith("lumitui.") and not issubclass(cls, ModalScreen):
            for binding in vars(cls).get("BINDINGS", ()):
                for key in binding.key.split(",") if isinstance(binding, Binding) else ():
                    if key.isalpha() and len(key) == 1:
                        yield key, binding.description
        yield from letters(cls)


def test_a_letter_means_one_thing_on_all_screens_but_for_a_short_list() -> None:
    for module in pkgutil.walk_packages(tui.__path__, f"{tui.__name__}."):
        importlib.import_module(module.name)
    meanings = defaultdict(set)
    for key, words in letters(DOMNode):
        meanings[key].add(words)
    moving = set("gjkG")  # First and Last, Top and End
    assert {k: v for k, v in meanings.items() if len(v) > 1 and k not in moving} == SEVERAL
    known = {name for ids in _known({}).values() for name in ids}
    assert set(other_words()) <= known, "other words are for an action that exists"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("run.cancle: x", "run.cancle is not an action. Did you mean run.cancel?"),
        ("zzzz: x", "zzzz is not an action. In the help (?), `/` lists the actions."),
        ("run.cancel: kex", "'kex' is not a key"),
        ("run.cancel: ctrl+kex", "'ctrl+kex' is not a key"),
        ("run.cancel: ''", "'' is not a key"),
        ("run.cancel: 'x,,z'", "'' is not a key"),
        ("run.cancel: l", "l is already the key of run.log"),
        ("run.cancel: '?'", "question_mark is already the key of app.help"),
        ("run.cancel: '1'", "1 is already the key of go.runs"),
        ("go.runs: c", "c is already the key of "),
    ],
)
def test_a_wrong_line_is_one_warning_and_is_left_out(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"# mine\nkeys:\n  run.proof: f5\n  {line}\n")
    found = read_keymap(file)
    assert found.keys == {"run.proof": "f5"}
    (warning,) = found.warnings
    assert warning.startswith(f"{file}, line 4: {said}")


def test_two_keys_can_change_places_and_a_dialog_may_use_a_key_of_the_app(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("keys:\n  run.cancel: d\n  run.why: c\n  confirm.yes: '1'\n")
    assert read_keymap(file).warnings == ()
    file.write_text("keys:\n  run.cancel: Z\n  run.why: Z\n")
    found = read_keymap(file)
    assert found.keys == {"run.cancel": "Z"}
    assert len(found.warnings) == 1 and "line 3" in found.warnings[0]


@pytest.mark.parametrize("text", ["keys: [a]\n", "keys: {\n", "\x00", "[]"])
def test_a_file_that_cannot_be_read_is_one_warning(tmp_path: Path, text: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    found = read_keymap(file)
    assert not found.keys and len(found.warnings) == 1 and str(file) in found.warnings[0]


def test_without_a_block_nothing_changes(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("notify: {}\nagents: {}\n")
    assert not read_keymap(file).keys and not read_keymap(file).warnings


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("kyes: {run.cancel: x}", "kyes is not a setting. Did you mean keys?"),
        ("theme: dark", "theme is not a setting. It may contain keys, notify, agents."),
    ],
)
def test_a_misspelt_block_is_a_warning(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"# mine\n{line}\n")
    assert read_keymap(file).warnings == (f"{file}, line 2: {said}",)


def test_the_users_own_keys_come_before_the_systems(tmp_path: Path) -> None:
    own, system = tmp_path / "own.yaml", tmp_path / "system.yaml"
    own.write_text("keys: {run.cancel: Z}\n")
    system.write_text("keys: {run.cancel: f5, run.proof: f6, run.why: Z}\n")
    found = read_keymap(own, system)
    assert found.keys == {"run.cancel": "Z", "run.proof": "f6"}
    (warning,) = found.warnings
    assert warning.startswith(f"{system}, line 1: Z is already the key of run.cancel")


async def test_own_keys_the_palette_and_the_help_agree(settings: Settings) -> None:
    settings.file.write_text("keys:\n  run.cancel: Z\n  run.cancle: z\n")
    app = LumiApp(settings)
    app.runs.history.begin(a_run(state=State.RUNNING, job_id="41"))
    async with app.run_test(size=(120, 50)) as pilot:
        assert "is not an action" in next(iter(app._notifications)).message
        await until(pilot, lambda: "Z Cancel" in keys_below(pilot), "the key in the footer")
        await pilot.press("question_mark")
        await sees(pilot, r"(?s)The table.*The run *│.*Z +Cancel the job, after confirmation")
        await pilot.press("slash", *"after confirm")
        await until(pilot, lambda: "First run" not in shown(pilot), "only what was typed")
        await sees(pilot, "Z +Cancel the job, after confirmation")
        await pilot.press("escape", "colon")
        await until(pilot, lambda: app.screen.query(Input), "the palette")
        # Each action on the chosen run, each screen; found by the words of its sentence.
        await sees(pilot, r"(?s)Why +Show [^│]+ d .*Script +Show [^│]+ b ")
        for words, title in (
            ("after confirm", "Cancel +Cancel the job, after confirmation +Z "),
            ("screen sites", "Sites +Open the Sites screen +3 "),
            ("sweep", "Grid +Compare the settings"),
            ("chain", "New +Create a run"),
            ("requeue", "Resubmit +Resubmit it on the same"),
            ("double the nodes", "Resubmit x2 +Resubmit it on twice"),
            ("GPU hours", "Cluster +Open the Cluster"),
        ):
            app.screen.query_one(Input).value = words
            await sees(pilot, title)
        for words, said in (
            ("laptop", "queue and budget of the site"),
            ("vit-tiny", "Open the run"),
        ):
            app.screen.query_one(Input).value = words
            await sees(pilot, said)
        app.screen.query_one(Input).value = "after confirm"
        await sees(pilot, "confirmation +Z ")
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
