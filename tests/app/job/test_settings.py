"""The folders of the user and of the system: whose profile and whose settings count."""

from pathlib import Path

import pytest

from lumitui.app.job.settings import SYSTEM, settings
from lumitui.app.mcp.allowance import Allowance, read_allowance
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.sites import Sites
from tests.support.program.command_line import Here
from tests.support.program.home import Home


def test_the_users_profiles_come_before_the_systems_and_those_before_lumituis(home: Home) -> None:
    own, system, _ = home.settings.profiles
    system.mkdir(parents=True)
    (system / "lumi.yaml").write_text("extends: lumi\ntitle: Ours\npoll_seconds: 77\n")
    (system / "breeze.yaml").write_text("extends: lumi\ntitle: Breeze\n")
    sites = Sites(home.settings.profiles)
    assert {"breeze", "lumi", "laptop"} <= set(sites.names())
    assert (sites.load("lumi").title, sites.own()) == ("Ours", ["breeze", "lumi"])
    (own / "lumi.yaml").write_text("extends: lumi\ntitle: Mine\n")
    lumi = sites.load("lumi")
    assert (lumi.title, lumi.poll_seconds) == ("Mine", 77)


def test_the_systems_profiles_are_listed_and_their_mistakes_named(here: Here, home: Home) -> None:
    system = home.settings.profiles[1]
    system.mkdir(parents=True)
    (system / "breeze.yaml").write_text("extends: lumi\ntitle: Breeze\n")
    (system / "gale.yaml").write_text("extends: nothing\n")
    done = here("site", "show")
    assert "breeze" in done.stdout
    place = f"{system / 'gale.yaml'}:1"
    assert f"lumitui skips the site gale: {place}: 'nothing' is not a site." in done.stderr
    assert str(system / "breeze.yaml") in here("site", "show", "breeze").stdout


def test_the_systems_folder_is_a_variable_or_that_of_the_platform() -> None:
    assert settings({}).profiles[1] == Path(SYSTEM) / "sites"
    assert settings({"LUMITUI_SYSTEM_DIR": "/opt/l"}).files[1] == Path("/opt/l/settings.yaml")


def test_only_the_user_allows_agents_and_a_misspelt_block_does_not_pass_for_none(
    home: Home,
) -> None:
    own, system = home.settings.files
    system.parent.mkdir()
    system.write_text("agents: {gpu_hours: 50}\n")
    assert read_allowance(own) == Allowance()
    own.write_text("agent: {gpu_hours: 50}\n")
    with pytest.raises(InputError, match="agent: unknown key; did you mean `agents`"):
        read_allowance(own)
