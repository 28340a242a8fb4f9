"""An entry of the ssh configuration that leads to the profile's host under another name."""

import getpass
from pathlib import Path

import pytest

from lumitui.remote.connect import connect
from lumitui.remote.site.errors import LinkError
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.connection import Ssh, decline
from tests.support.servers.sshd import Answers, Sshd, new_key, public, running_sshd


def configured(server: Sshd, alias: str, more: str = "", everywhere: str = "") -> Login:
    """Write a configuration where only the alias `lumi` leads to `server`; return the login."""
    server.config.write_text(
        f"Host old\n HostName localhost\n Port 1\n"
        f"Host {alias}\n HostName LOCALHOST\n Port {server.port}\n User {getpass.getuser()}\n"
        f" IdentityFile {server.identity}\n{alias and more}\n"
        f"Host *\n{everywhere}\n User nobody\n IdentitiesOnly yes\n IdentityAgent none\n"
        f" UserKnownHostsFile {server.known_hosts}\n GlobalKnownHostsFile /dev/null\n"
    )
    return Login("localhost", config=server.config, site="lumi")


def test_an_alias_that_leads_to_the_host_is_used_and_named(server: Sshd) -> None:
    login = configured(server, "lumi")
    server.trust(f"[localhost]:{server.port}")
    connection = Ssh(login)
    assert connection.run("echo in").text == "in\n"
    connection.close()
    assert (
        "lumitui uses `Host lumi` of the ssh configuration, an alias for localhost. "
        "It ignores the other aliases: `old`."
    ) in connection.notes
    # Of several, none of which is the site's name, the first counts.
    assert any("`Host old`" in note for note in Ssh(configured(server, "other")).notes)
    # An entry for the name itself counts before an alias.
    text = server.config.read_text()
    server.config.write_text(f"Host x localhost\n User somebody\n{text}")
    assert Ssh(login).user == "somebody" and "lumi" not in " ".join(Ssh(login).notes)


def test_an_alias_in_an_included_file_and_one_with_a_jump_host(
    server: Sshd, tmp_path: Path
) -> None:
    login = configured(server, "lumi", " ProxyJump jump")
    with running_sshd(tmp_path / "jump") as jump:
        jump.allow(server.identity)
        keys = (f"[localhost]:{server.port} {public(server.host_key)}\n"
                f"[127.0.0.1]:{jump.port} {public(jump.host_key)}\n")  # fmt: skip
        server.known_hosts.write_text(keys)
        hop = f"Host jump\n HostName 127.0.0.1\n Port {jump.port}\n User {getpass.getuser()}\n"
        included = tmp_path / "included"
        included.write_text(f"{hop} IdentityFile {server.identity}\n{server.config.read_text()}")
        server.config.write_text(f"Include {included}\n")
        connection = Ssh(login)
        assert connection.run("echo in").text == "in\n"
        connection.close()
        assert jump.logged("Accepted publickey") == 1


@pytest.mark.parametrize(
    "loose",
    [
        "StrictHostKeyChecking accept-new",
        "StrictHostKeyChecking no",
        "HostKeyAlias fresh\n StrictHostKeyChecking accept-new",
        "UserKnownHostsFile /dev/null\n StrictHostKeyChecking no",
        "HostKeyAlias fresh\n UserKnownHostsFile /dev/null",
    ],
)
def test_an_alias_makes_no_host_key_trusted(server: Sshd, tmp_path: Path, loose: str) -> None:
    login = configured(server, "lumi", f" {loose}")
    server.known_hosts.write_text("")
    unknown, before = Answers("no"), server.logged("Accepted ")
    with pytest.raises(LinkError, match=r"did not accept|is unknown"):
        Ssh(login, unknown).run("true")
    assert unknown.questions
    # The name has another key in known_hosts: it changed, whatever the alias calls it.
    other = public(new_key(tmp_path / "other"))
    server.known_hosts.write_text(f"[localhost]:{server.port} {other}\n")
    with pytest.raises(LinkError, match=r"changed|differs|another"):
        Ssh(login, Answers("yes")).run("true")
    server.known_hosts.write_text("")
    strict = configured(server, "lumi", f" {loose}", " StrictHostKeyChecking yes")
    with pytest.raises(LinkError, match="StrictHostKeyChecking is yes"):
        Ssh(strict, Answers("yes")).run("true")
    assert server.logged("Accepted ") == before


def test_a_site_s_profile_is_reached_by_its_alias(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host lumi\n HostName lumi.csc.fi\n User someone\n")
    site = Sites([BUILT_IN]).load("lumi")
    hosts = site.hosts.model_copy(update={"ssh_config": str(config)})
    connection = connect(site.model_copy(update={"hosts": hosts}), decline)
    assert connection.user() == "someone"
    assert any("`Host lumi`" in note for note in connection.notes())
    own = hosts.model_copy(update={"user": "me"})
    assert connect(site.model_copy(update={"hosts": own}), decline).user() == "me"
