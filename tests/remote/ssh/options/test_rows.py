"""Every keyword of ssh_config has a row, and the row decides: honoured, harmless or refused."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import Login
from lumitui.remote.ssh.options import openssh as module
from lumitui.remote.ssh.options import resolve as resolve_module
from lumitui.remote.ssh.options.openssh import openssh_table
from lumitui.remote.ssh.options.resolve import resolve
from lumitui.remote.ssh.options.rows import ROWS, judge

KEYWORDS = [
    line
    for line in Path(__file__).with_name("keywords.txt").read_text().splitlines()
    if not line.startswith("#")
]
LISTS = {
    "cipher": "Ciphers",
    "mac": "MACs",
    "kex": "KexAlgorithms",
    "key-plain": "HostKeyAlgorithms",
    "key-sig": "PubkeyAcceptedAlgorithms",
}


def openssh(*words: str) -> list[str]:
    done = subprocess.run(["ssh", *words], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_every_keyword_of_the_manual_has_a_row(keyword: str) -> None:
    row = ROWS[keyword.lower()]
    assert row.verdict in ("honoured", "harmless", "refused") and row.why


def test_every_keyword_that_openssh_prints_has_a_row() -> None:
    printed = {line.split(" ")[0].lower() for line in openssh("-F", "none", "-G", "site")}
    assert len(printed) > 60 and printed <= set(ROWS)


def test_what_openssh_prints_without_a_configuration_is_used_without_a_note() -> None:
    login = Login("site", config=Path("none"))
    assert resolve(login, openssh_table(login)).notes == ()


@pytest.mark.parametrize("query", LISTS)
def test_each_algorithm_of_openssh_alone_is_used_or_refused_by_name(
    tmp_path: Path, query: str
) -> None:
    keyword, used = LISTS[query], 0
    for name in openssh("-Q", query):
        config = tmp_path / "config"
        config.write_text(f"{keyword} {name}\n")
        login = Login("site", config=config)
        try:
            found = resolve(login, openssh_table(login)).algorithms
        except LinkError as error:
            assert keyword in error.message and name in error.message and error.hint
            continue
        used += 1
        limited = {
            "Ciphers": found.ciphers,
            "MACs": found.macs,
            "KexAlgorithms": found.kex,
            "HostKeyAlgorithms": found.host_keys,
            "PubkeyAcceptedAlgorithms": found.public_keys,
        }[keyword]
        # A MAC that lumitui has not does no harm beside a cipher that needs none.
        assert len(limited) == 1 or (keyword == "MACs" and not limited)
    assert used


@pytest.mark.parametrize(
    "keyword", [row.keyword for row in ROWS.values() if row.verdict == "refused"]
)
def test_a_refused_option_is_named_with_its_value_and_what_to_do(keyword: str) -> None:
    with pytest.raises(LinkError) as raised:
        judge("lumi", {keyword.lower(): ["strange"]}, {})
    assert f"sets {keyword} to strange for lumi" in raised.value.message
    assert ROWS[keyword.lower()].why in raised.value.message and raised.value.hint


@pytest.mark.parametrize("keyword", [row.keyword for row in ROWS.values() if row.note])
def test_an_option_that_is_read_otherwise_is_said(keyword: str) -> None:
    (note,) = judge("lumi", {keyword.lower(): ["strange"]}, {})
    assert note.startswith(f"{keyword} strange: ") and note.endswith(".")
    for value in ROWS[keyword.lower()].unless:
        assert not judge("lumi", {keyword.lower(): [value.replace("*", "0")]}, {})


@pytest.mark.parametrize("default", ["strange", "usual"])
def test_an_option_of_a_later_openssh_is_refused_unless_it_has_its_default(default: str) -> None:
    values, usual = {"quantumlink": ["strange"]}, {"quantumlink": [default]}
    if default == "strange":
        assert judge("lumi", values, usual) == ()
        return
    with pytest.raises(LinkError, match="quantumlink to strange"):
        judge("lumi", values, usual)


def test_a_later_openssh_is_asked_for_its_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in that prints a keyword more: no OpenSSH of today has it."""
    program = tmp_path / "ssh"
    program.write_text(
        "#!/bin/sh\nvalue=usual\n"
        'case "$*" in *strange*) value=strange ;; esac\n'
        f'{shutil.which("ssh")} "$@"; echo quantumlink $value\n'
    )
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    # Other tests have asked the real one, and its answer is kept.
    monkeypatch.setattr(resolve_module, "defaults", module.defaults.__wrapped__)
    assert resolve(Login("usual"), openssh_table(Login("usual"))).hostname == "usual"
    with pytest.raises(LinkError, match="quantumlink"):
        resolve(Login("strange"), openssh_table(Login("strange")))


def test_an_older_openssh_prints_older_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in that renames what OpenSSH 8.4 calls otherwise."""
    program = tmp_path / "ssh"
    program.write_text(
        f'#!/bin/sh\n{shutil.which("ssh")} "$@" | sed -e '
        "'s/^pubkeyacceptedalgorithms/pubkeyacceptedkeytypes/' "
        "-e 's/^kbdinteractiveauthentication/challengeresponseauthentication/'\n"
    )
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    config = tmp_path / "config"
    config.write_text("PubkeyAcceptedAlgorithms ssh-ed25519\nKbdInteractiveAuthentication no\n")
    login = Login("site", config=config)
    found = resolve(login, openssh_table(login))
    assert found.algorithms.public_keys == ("ssh-ed25519",)
    assert found.methods == ("publickey", "password")


def test_a_list_that_openssh_leaves_out_is_an_error(tmp_path: Path) -> None:
    """`ssh -G` ends with 0 here, and prints no list at all."""
    config = tmp_path / "config"
    config.write_text("PubkeyAcceptedAlgorithms !ssh-ed25519,*\n")
    login = Login("site", config=config)
    with pytest.raises(LinkError, match="cannot use PubkeyAcceptedAlgorithms"):
        resolve(login, openssh_table(login))
