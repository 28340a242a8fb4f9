"""The guide: it opens at the very first start, checks a real login, can be left, and goes on."""

import getpass
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from textual.widgets import Button, Input

from lumitui.app.job.settings import Settings
from lumitui.app.runs import HostAddress, Runs, WrittenProfile, guide
from lumitui.app.runs.guide import GuideAnswers, keep_progress
from lumitui.app.survey.profile.surveys import Surveys
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.notice_dialogs import ErrorDialog
from lumitui.app.tui.dialogs.pick import PickDialog
from lumitui.app.tui.screens.guide_screen import GuideScreen, check_text
from lumitui.app.tui.screens.new_screen import NewScreen
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.sites import Sites
from tests.support.program.driven_tui import cut_off, sees, shown, until
from tests.support.program.home import Home
from tests.support.servers.sshd import Sshd, new_key


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    """A login node that knows one key alone: the one in the person's ~/.ssh."""
    server = Sshd(tmp_path / "sshd")
    server.trust("[127.0.0.1]:" + str(server.port))
    yield server
    server.stop()


@pytest.fixture
def first(home: Home, server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A person who starts lumitui for the first time, and a cluster it comes with."""
    here = tmp_path / "person"
    (here / ".ssh").mkdir(parents=True)
    server.allow(new_key(here / ".ssh" / "id_far"))
    monkeypatch.setenv("HOME", str(here))
    monkeypatch.chdir(here)
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "far.yaml").write_text(
        "extends: lumi\n"
        f"hosts: {{login: site, ssh_config: {server.config}, fingerprints: null}}\n"
        f"work_root: {tmp_path}/far\n"
    )
    own, _, built_in = home.settings.profiles
    return Settings((own, shipped, built_in), home.data)


async def test_the_first_start_leads_to_a_checked_site_and_a_job(
    first: Settings, server: Sshd
) -> None:
    app = LumiApp(first)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, GuideScreen), "the guide")
        # All of it is on the smallest usual terminal, and the first step is the next one.
        for words in (
            "On this machine",
            "4 Cluster +idle nodes",
            "▶ 1 site",
            "· 4 project",
            "7 job",
            "proved +needs whole nodes, and a measured node",
        ):
            await sees(pilot, words)
        await pilot.press("f3")
        await sees(pilot, "Complete the step `site` first")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "what is missing")
        await pilot.press("escape")
        # Arrows move the cursor, also to the demo, and enter acts on its row.
        await pilot.press("up")
        await sees(pilot, "(?s)▶ demo.*· 1 site")
        # In a field that needs an earlier step, it names the step.
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "what is missing")
        await sees(pilot, "Complete the step `site` first")
        await pilot.press("escape", "enter")
        await until(pilot, lambda: isinstance(app.screen, PickDialog), "the clusters")
        await sees(pilot, "another cluster")
        await pilot.press(*"far", "enter")
        await sees(pilot, r"(?s)✔ 1 site +far.*▶ 2 user")
        await pilot.press(*getpass.getuser(), "enter", "enter", "down")
        await sees(pilot, "▶ 4 project")
        await pilot.press(*"nonsense", "enter")
        await sees(pilot, "(?s)▶ 4 project.*This is not a valid project name")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the runs")
    app.runs.close()
    assert not (first.profiles[0] / "far.yaml").exists()

    app = LumiApp(first)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "no guide by itself")
        await pilot.press("0")
        await until(pilot, lambda: isinstance(app.screen, GuideScreen), "the guide")
        await sees(pilot, r"(?s)✔ 3 key +◂ id_far ▸.*▶ 4 project")
        app.screen.query_one("#project", Input).value = "project_462000001"
        await pilot.press("enter")
        await sees(pilot, "▶ 5 check")
        await pilot.press("f4")  # which checks first
        # The login is real; what follows has no Slurm, and says so.
        await sees(pilot, "✔ 6 measure +Measure a node F5")
        await sees(pilot, r"(?s)▶ 7 job.*facts match the profile.*failed: ")
        assert server.logged("Accepted publickey") == 1
        assert "id_far" in (first.profiles[0] / "far.yaml").read_text()
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the first job")
        job = Path("lumitui-first/job.yaml").read_text()
        assert "site: far" in job and "account: project_462000001" in job
    app.runs.close()


@pytest.mark.parametrize(
    ("files", "script"),
    [
        (("train.py", "prepare.py"), "train.py"),
        (("finetune.py", "notes.txt", "job.sbatch"), "finetune.py"),
        (("a.py", "b.py"), ""),
        ((), ""),
    ],
)
async def test_the_first_job_runs_the_users_own_script_if_it_is_clear_which(
    first: Settings, files: tuple[str, ...], script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runs, "doctor", lambda *_: [Finding("Slurm", "note", "22.05.8")])
    for name in files:
        Path(name).write_text("#SBATCH --nodes=1\nimport torch\nprint(f'loss {train()}')\n")
    answers = GuideAnswers(site="far", user="me", key=str(Path.home() / ".ssh" / "id_far"),
                           account="project_462000001")  # fmt: skip
    first.guide.parent.mkdir(parents=True, exist_ok=True)
    keep_progress(first, answers)
    app = LumiApp(first)
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.press("0")
        await sees(pilot, "▶ 5 check")
        await pilot.press("f4")  # checks, then makes the job
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the first job")
        job = Path("job.yaml" if script else "lumitui-first/job.yaml").read_text()
        assert "site: far" in job and (not script or f"script: {script}" in job)
        assert not script or "metrics:" in job, "the loss that the script prints is drawn"
    app.runs.close()


async def test_the_guide_says_that_the_demo_lacks_torch(
    first: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guide, "has_torch", lambda: False)
    app = LumiApp(first)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "but this Python lacks PyTorch\\.")
        await sees(pilot, "4 Cluster +idle nodes")
    app.runs.close()


async def test_the_demo_is_a_key_away(first: Settings) -> None:
    if find_spec("torch") is None:
        pytest.skip("torch trains the demo")
    app = LumiApp(first)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, GuideScreen), "the guide")
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the demo's job")
        await sees(pilot, "2 ranks on CPU")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, GuideScreen), "the guide again")
    app.runs.close()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_only_the_next_step_is_explained(first: Settings, size: tuple[int, int]) -> None:
    app = LumiApp(first)
    async with app.run_test(size=size) as pilot:
        await sees(pilot, "4 Cluster +idle nodes, your queue")
        await sees(pilot, "Choose a cluster")
        assert "Sends nothing." not in shown(pilot) and not cut_off(pilot)
    app.runs.close()


async def test_a_host_that_ssh_knows_is_surveyed_and_its_project_taken_over(
    first: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path.home() / ".ssh" / "config").write_text("Host rare *.org\n")
    described: list[str] = []

    def describe(self: Surveys, name: str, host: HostAddress, **_: object) -> WrittenProfile:
        described.append(host.login)
        path = first.profiles[0] / f"{name}.yaml"
        text = f"extends: far\nname: {name}\naccount: {{default: project_465000001}}\n"
        site = Sites(first.profiles).load("far").model_copy(update={"name": name})
        return WrittenProfile(path, site, ("partitions.a.b",), (), text)

    monkeypatch.setattr(Surveys, "describe", describe)
    app = LumiApp(first)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, GuideScreen), "the guide")
        app.screen.query_one("#site", Button).press()
        await sees(pilot, "rare +a host in ~/.ssh/config: survey it")
        assert "*.org" not in shown(pilot)
        # Nothing fits, and the way on stays; then the host is surveyed at once.
        await pilot.press(*"zzz")
        await sees(pilot, "(?s)zzz.*another cluster …")
        await pilot.press(*["backspace"] * 3, *"rare", "enter")
        await sees(pilot, r"(?s)guessed +prices.*⏎ Save")
        assert described == ["rare"]
        await pilot.press("enter")
        await sees(pilot, r"(?s)✔ 1 site +rare.*✔ 4 project +▌ project_465000001")
        await sees(pilot, r"(?s)2 user.* from .*3 key.*✔ 5 check.*▶ 7 job")  # the survey checked
        assert "your user name" not in shown(pilot)


def test_the_check_names_the_facts_that_differ_and_free_space_is_none() -> None:
    right = Finding("Slurm", "note", "22.05.8")
    full = Finding("work root", "warning", "/w, 0.5 GiB free", "Free some space.")
    text = check_text([right, full]).plain
    assert text == (
        "1 of 1 facts match the profile.\nwarning: work root: /w, 0.5 GiB free. Free some space."
    )
    other = Finding("node nid1 gres_types", "warning", "[a]; the profile has [b]", "Set it.")
    wrong = Finding("node nid1 gpus", "error", "4; the profile has 8", "Set it.")
    first, *rest = check_text([right, other, wrong]).plain.splitlines()
    assert first == "1 of 3 facts match the profile."
    assert [line.partition(":")[0] for line in rest] == ["failed", "warning"]
