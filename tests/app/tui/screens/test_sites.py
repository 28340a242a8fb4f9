"""What a site is asked is counted where it is asked, and shown on the Sites screen."""

from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Input, Static

from lumitui.app.job.settings import Settings
from lumitui.app.runs import HostAddress, InputError, Runs, WrittenProfile
from lumitui.app.survey.profile.surveys import Surveys
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.new_cluster import NewClusterDialog, ssh_hosts
from lumitui.app.tui.screens.sites_screen import SitesScreen
from lumitui.remote.transport.request_log import Footprint
from tests.support.jobs.small_jobs import finish, hello_job, hello_project, wait_until
from tests.support.program.driven_tui import (
    app_of,
    ended,
    sees,
    sent,
    shown,
    until,
)
from tests.support.servers.cluster import Cluster


def test_the_counts_are_what_the_server_saw(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs = cluster_runs
    assert runs.footprint("minilumi") == Footprint()
    cluster.clear_calls()
    run = finish(runs, runs.send(runs.preview(hello_job(), hello_project(tmp_path))))
    # A job that no one knows any more: the poll also asks accounting.
    runs.history.begin(replace(run, id=f"{run.id}-gone", state=run.state.QUEUED, job_id="999999"))
    runs.refresh("minilumi")
    cost = runs.footprint("minilumi")
    wait_until(lambda: cluster.sessions().commands == cost.requests, what="every channel logged")
    assert cluster.sessions().logins == cost.logins == 1
    calls = [call.command for call in cluster.calls()]
    assert calls.count("sbatch") == 1 and calls.count("sacct") == 1
    assert len(calls) == cost.commands
    assert cost.bytes_up > 1000 and cost.bytes_down > 1000


async def test_the_sites_screen_shows_what_was_asked(settings: Settings, project: Path) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        await until(pilot, lambda: isinstance(pilot.app.screen, SitesScreen), "the sites")
        await sees(pilot, r"Site +Name +GPUs +State.*(?s:.*)laptop +This machine")
        run = await sent(pilot)
        await ended(pilot, run.id)
        assert app_of(pilot).runs.footprint("laptop").requests > 2
        await pilot.press("H")
        await sees(pilot, r"(?s)\d\d:\d\d:\d\d +laptop +(poll|tidy) .* ok.*laptop +submit .* ok")
        await sees(pilot, r"lumitui docs plain: the commands that match each screen")
        log = app_of(pilot).runs.requests()["laptop"]
        assert {row.kind for row in log} <= {
            "poll",
            "tidy",
            "submit",
            "send",
            "send code",
            "metrics",
        }
        await pilot.press("escape")
        await sees(pilot, r"This machine \(laptop\) (?s:.*)[1-9]\d* requests ─")


async def test_closed_sites_are_at_the_end_and_say_what_takes_their_place(
    settings: Settings,
) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        await sees(pilot, r"(?s)laptop +This machine .*karolina .*roihu .*mahti .*puhti ")
        await pilot.press("end")
        await sees(pilot, r"- puhti +Puhti .* closed, use roihu")
        await sees(pilot, r"It has run no jobs since 2026-07-31; use roihu")


async def test_a_site_is_shown_as_a_page(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        await until(pilot, lambda: isinstance(pilot.app.screen, SitesScreen), "the sites")
        await pilot.press("v")
        await sees(pilot, r"(?s)─ .+ \(\w+\) .*Where.*Partitions")
        drawn = pilot.app.screen.query_one("#site-page Static", Static)
        lines = str(drawn.content).splitlines()
        assert [line for line in lines if len(line) > drawn.size.width] == []
        await pilot.press("escape")
        await sees(pilot, r"Site +Name +GPUs")
        assert isinstance(pilot.app.screen, SitesScreen)


async def test_a_cluster_without_a_profile_is_surveyed_and_saved(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[str] = []

    def describe(surveys: Surveys, name: str, host: HostAddress, **more: object) -> WrittenProfile:
        if name == "bad":
            raise InputError("Nodes differ.", "Name a partition.")
        site = surveys._sites.load("lumi").model_copy(update={"name": name})
        return WrittenProfile(Path(f"{name}.yaml"), site, ("work_root",), ("cpu: no GPUs",), "",
                              "Jobs run in /appl/torch.sif")  # fmt: skip

    def save(surveys: Surveys, profile: WrittenProfile) -> None:
        saved.append(profile.site.name)
        (settings.profiles[0] / "far.yaml").write_text("extends: lumi\n")

    monkeypatch.setattr(Surveys, "describe", describe)
    monkeypatch.setattr(Surveys, "save", save)
    async with LumiApp(settings).run_test(size=(100, 30)) as pilot:
        await pilot.press("3", "slash", *"mare", "enter")
        await sees(pilot, "mn5")
        await until(pilot, lambda: "karolina" not in shown(pilot), "one site")
        await pilot.press("escape", "n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewClusterDialog), "the dialog")
        await sees(pilot, "⏎ Survey")
        await pilot.press(*"bad.org", "enter")
        await sees(pilot, "Nodes differ")
        assert pilot.app.screen.query_one("#host", Input).value == "bad.org"
        pilot.app.screen.query_one("#host", Input).value = "far.org"
        await pilot.press("enter")
        words = "8 x GCD.*guessed +the folder of runs.*out +cpu.*Jobs run in.*next +F5.*⏎ Save"
        await sees(pilot, f"(?s){words}")
        assert not saved
        await pilot.click("#save")
        await until(pilot, lambda: saved == ["far"], "the profile")
        await sees(pilot, r"(?s)far .*alps")


def test_the_hosts_of_an_ssh_config_are_offered_without_its_patterns(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host lumi far\n  User me\nhost *.org !no\nHostName x\n")
    assert ssh_hosts(config) == ["lumi", "far"]
    assert ssh_hosts(tmp_path / "none") == []
