"""Tokens and aliases in an SSH configuration."""

import getpass
import os
import pwd
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.remote.connect import connect
from lumitui.remote.site.errors import LinkError
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.connection import Ssh, decline
from lumitui.remote.ssh.options.openssh import check_names, openssh_table
from lumitui.remote.ssh.options.resolve import resolve
from tests.support.servers.sshd import Answers, Sshd, logs_in, new_key, public, running_sshd

LETTERS = "CdhikLlnpru%"
COMMANDS = (
    "$(touch {made})",
    "`touch {made}`",
    "site;touch {made}",
    "site|touch {made}",
    "site&&touch${{IFS}}{made}",
    "site\ntouch {made}",
    "-oProxyCommand=touch {made}",
    "'site'",
    "",
)


@pytest.mark.parametrize("letter", LETTERS)
def test_a_token_is_what_openssh_makes_of_it(tmp_path: Path, letter: str) -> None:
    config = tmp_path / "config"
    config.write_text(
        "Host site\nHostName 127.0.0.9\nPort 2200\nUser somebody\nHostKeyAlias alias\n"
        f"ProxyJump jump\nIdentityFile /%{letter}\nCertificateFile /%{letter}\n"
    )
    command = ["ssh", "-F", str(config), "-o", f"ControlPath=/%{letter}", "-G", "site"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    theirs = next(line for line in printed.splitlines() if line.startswith("controlpath "))
    login = Login("site", config=config)
    ours = resolve(login, openssh_table(login))
    expected = theirs.removeprefix("controlpath /")
    assert ours.identities == ours.certificates == (Path("/" + expected),)


def test_a_variable_and_the_home_folder_are_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text(
        'IdentityFile ${PLACE}/%%/key\nIdentityFile "~/a \\"b\\" \\\\%%c"\n'
        "CertificateFile ~root/key\nUserKnownHostsFile ~/known\n"
    )
    monkeypatch.setenv("PLACE", "/a %h $(b)")
    monkeypatch.setenv("HOME", "/elsewhere")  # which OpenSSH does not ask
    login = Login("site", config=config)
    found = resolve(login, openssh_table(login))
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    once = Path("/a %h $(b)/%/key")
    assert found.identities == (once, home / 'a "b" \\%c'), "filled in once, and not again"
    assert found.certificates == (Path(pwd.getpwnam("root").pw_dir, "key"),)
    assert found.trust.files == (home / "known",)


@pytest.mark.parametrize("text", ["%", "%Z", "${}", "${OPEN", "${LUMITUI_NOT_SET}"])
@pytest.mark.parametrize("option", ["IdentityFile /", "CertificateFile /", "ProxyCommand true "])
def test_what_cannot_be_filled_in_is_an_error(tmp_path: Path, option: str, text: str) -> None:
    config = tmp_path / "config"
    config.write_text(f"{option}{text}\n")
    login = Login("site", config=config)
    if "Proxy" in option and "$" in text:  # the shell's
        assert resolve(login, openssh_table(login)).proxy_command == f"true {text}"
        return
    with pytest.raises(LinkError) as raised:
        resolve(login, openssh_table(login))
    assert text in raised.value.message


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", ["host", "user", "HostName", "User", "ProxyJump"])
def test_no_name_reaches_a_shell(tmp_path: Path, command: str, place: str) -> None:
    made, config = tmp_path / "made", tmp_path / "config"
    name = command.format(made=made)
    line = f"{place} {name}\n" if place[0].isupper() else ""
    if ("\n" in name and line) or (not name and place != "host"):
        return  # it cannot be written on a line; an empty user is no user
    # OpenSSH itself runs this for a HostName in the person's own file.
    match = 'Match exec "true %n %h %r"\n' if not line else ""
    config.write_text(
        f"{line}{match}ProxyCommand sh -c 'true %h %n %r'\n"
        "ConnectTimeout 1\nUserKnownHostsFile /dev/null\n"
    )
    host, user = (name if place == what else "site" for what in ("host", "user"))
    login = Login(host, user=user if place == "user" else None, config=config)
    with pytest.raises(LinkError) as raised:
        Ssh(login).run("true")
    assert not made.exists()
    assert raised.value.hint


@pytest.mark.parametrize(
    ("host", "user"),
    [("lumi.csc.fi", "me"), ("fe80::1%eth0", "me@site"), ("a_b-c", "SITE\\me"), ("h", "a b")],
)
def test_ordinary_names_pass(host: str, user: str) -> None:
    check_names(host, user)


def test_names_are_judged_as_openssh_judges_them() -> None:
    """The characters are those of `ssh_valid_hostname` and `ssh_valid_ruser`, OpenSSH 10.5."""
    for number in range(1, 128):
        letter = chr(number)
        bad_host = letter in "'`\"$\\;&<>|(){}," or letter.isspace() or number < 32 or number == 127
        bad_user = letter in "'`\";&<>|(){}" or number < 32 or number == 127
        for bad, host, user in ((bad_host, f"a{letter}b", ""), (bad_user, "a", f"a{letter}b")):
            if bad:
                with pytest.raises(LinkError):
                    check_names(host, user)
            else:
                check_names(host, user)
    for host, user in (("-a", ""), ("a", "-a"), ("a", "a -b"), ("a", "a\\")):
        with pytest.raises(LinkError):
            check_names(host, user)


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
    logs_in(connection)
    assert (
        "lumitui uses `Host lumi` of the ssh configuration, an alias for localhost. "
        "It ignores the other aliases: `old`."
    ) in connection.notes
    # Of several, none of which is the site's name, the first counts.
    assert any("`Host old`" in note for note in Ssh(configured(server, "other")).notes)
    # Or the one with the profile's port, then the one with its user.
    near = replace(login, port=server.port, site="elsewhere")
    assert any("uses `Host other`" in note for note in Ssh(near).notes)
    near = replace(near, port=None, user=getpass.getuser())
    assert any("uses `Host other`" in note for note in Ssh(near).notes)
    # An entry for the name itself counts before an alias.
    text = server.config.read_text()
    server.config.write_text(f"Host x localhost\n User somebody\n{text}")
    assert Ssh(login).user == "somebody" and "lumi" not in " ".join(Ssh(login).notes)


def test_of_two_aliases_the_one_with_the_port_counts_before_the_one_with_the_user(
    tmp_path: Path,
) -> None:
    ported = "Host ported\n HostName localhost\n Port 2222\n User other\n"
    named = "Host named\n HostName localhost\n Port 22\n User alice\n"
    config = tmp_path / "config"
    for text in (ported + named, named + ported):
        config.write_text(text)
        login = Login("localhost", port=2222, user="alice", config=config, site="elsewhere")
        found = Ssh(login)
        assert any("uses `Host ported`" in note for note in found.notes)
        assert found.user == "alice", "the profile's user and port win over the alias's"


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
        logs_in(Ssh(login))
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
