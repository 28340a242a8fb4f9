"""What looks like a secret is kept back by every scan, unless a pattern names it."""

import json
import time
from pathlib import Path

import pytest

from lumitui.remote.site.errors import InputError
from lumitui.remote.source import scan as module
from lumitui.remote.source.guard import ScanGuard
from lumitui.remote.source.hash_cache import Hashes
from lumitui.remote.source.scan import scan
from tests.support.files.project_files import write
from tests.support.files.secrets import HARMLESS_NAMES, KEYS, NO_SETTINGS, SECRET_NAMES, SETTINGS

KEY = KEYS[8].text


def scanned(root: Path, *ship: str) -> tuple[list[str], ScanGuard]:
    guard = ScanGuard(ship)
    return [entry.path for entry in scan(root, guard=guard).entries], guard


def test_every_kind_of_secret_is_kept_back_and_named(tmp_path: Path) -> None:
    names = {place for path in SECRET_NAMES for place in (path, f"deep/er/{path}", path.upper())}
    write(tmp_path, "train.py", *names)
    sent, guard = scanned(tmp_path)
    assert sent == ["train.py"]
    assert {item.path for item in guard.kept_back} == names
    assert all(item.by == "name" and item.line is None and item.source for item in guard.kept_back)


def test_what_only_looks_like_a_secret_is_sent(tmp_path: Path) -> None:
    names = [place for path in HARMLESS_NAMES for place in (path, f"deep/er/{path}")]
    write(tmp_path, *names)
    sent, guard = scanned(tmp_path)
    assert sorted(sent) == sorted(names) and not guard.kept_back


def test_a_key_in_a_file_keeps_it_back_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, "notes.txt", "data.bin", "fine")
    (tmp_path / "notes.txt").write_text(f"a\nb\ntoken = {KEY}\n")
    (tmp_path / "data.bin").write_bytes(b"\0\n" * 1_500_000 + KEY.encode() + b"\0" * 9)
    sent, guard = scanned(tmp_path)
    assert sent == ["fine"]
    found = [(item.path, item.line, item.by) for item in guard.kept_back]
    assert found == [("data.bin", 1_500_001, "contents"), ("notes.txt", 3, "contents")]


@pytest.mark.parametrize(
    ("ship", "sent"),
    [
        (["conf/.env"], ["conf/.env"]),
        (["./conf/.env"], ["conf/.env"]),
        (["conf"], ["conf/.env", "conf/a.key"]),
        (["conf/"], ["conf/.env", "conf/a.key"]),
        (["conf/*"], ["conf/.env", "conf/a.key"]),
        (["*.key"], ["b.key"]),
        (["**/*.key"], ["b.key", "conf/a.key"]),
        ([".env"], []),
        (["key", "a.key", "nf/.env", "CONF/.env"], []),
    ],
)
def test_only_what_the_patterns_name_is_sent(
    tmp_path: Path, ship: list[str], sent: list[str]
) -> None:
    write(tmp_path, "conf/.env", "conf/a.key", "b.key")
    found, guard = scanned(tmp_path, *ship)
    assert found == sent == sorted(item.path for item in guard.shipped)
    assert len(guard.kept_back) == 3 - len(sent)
    assert guard.unused == (() if sent else tuple(ship))


def test_a_pattern_lets_contents_pass_too(tmp_path: Path) -> None:
    write(tmp_path, "tests/fake.py")
    (tmp_path / "tests" / "fake.py").write_text(KEY)
    found, guard = scanned(tmp_path, "tests/fake.py")
    assert found == ["tests/fake.py"] and [item.line for item in guard.shipped] == [1]


def test_what_a_link_with_a_secret_s_name_points_to_is_kept_back(tmp_path: Path) -> None:
    write(tmp_path, "plain", "folder/in/it", "other")
    (tmp_path / ".env").symlink_to("hop")
    (tmp_path / "hop").symlink_to("plain")
    (tmp_path / "folder" / "token.txt").symlink_to("in")
    found, guard = scanned(tmp_path)
    assert [path for path in found if not (tmp_path / path).is_symlink()] == ["other"]
    assert {item.path for item in guard.kept_back} == {"plain", "folder/in/it"}
    assert ".env" in next(item.what for item in guard.kept_back if item.path == "plain")


CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("ca.pem", CERTIFICATE, False),
        ("ca.pem", CERTIFICATE + "-----BEGIN EC PARAMETERS-----\n", False),
        ("key.pem", CERTIFICATE + f"-----BEGIN RSA {'PRIVATE'} KEY-----\n", True),
        ("what.pem", "", True),
        (".npmrc", "registry=https://example.org/\n", False),
        (".npmrc", "//example.org/:_authToken=abc\n", True),
        ("pip.conf", "[global]\nindex-url = https://example.org/simple\n", False),
        ("pip.conf", "[global]\nindex-url = https://me:pass@example.org/simple\n", True),
        (".gitconfig", "[user]\nname = Me\nemail = me@example.org\n", False),
        (".gitconfig", "[github]\n\ttoken = abc\n", True),
        (".gitconfig", f'[url "https://{KEY[4:]}@github.com/"]\n', True),
        ("ENV", "A_KEY=abc\n", True),
        ("env", "#!/bin/sh\nexec python3\n", False),
        ("my_wandb.txt", "0123456789" * 4 + "\n", True),
        ("my_wandb.txt", "0123456789" * 4 + " is a commit\n", False),
        (".gitmodules", "url = git@example.org:a/b.git\n", False),
    ],
)
def test_some_names_are_decided_by_what_is_in_them(
    tmp_path: Path, name: str, text: str, kept: bool
) -> None:
    (tmp_path / name).write_text(text)
    found, guard = scanned(tmp_path)
    assert bool(guard.kept_back) is kept and (found == []) is kept


@pytest.mark.parametrize("text", SETTINGS, ids=lambda text: text[:14])
def test_a_long_value_counts_in_settings_and_not_in_code(tmp_path: Path, text: str) -> None:
    settings = ["a.yaml", "a.json", "a.ini", "a.toml", "a.cfg", "vars", ".vars", "run.sh"]
    for name in (*settings, "a.py", "a.yaml.example", "settings.template.json"):
        (tmp_path / name).write_text(f"first\n{text}\n")
    sent, guard = scanned(tmp_path)
    assert sent == ["a.py", "a.yaml.example", "settings.template.json"]
    assert {item.path for item in guard.kept_back} == set(settings)


@pytest.mark.parametrize("text", NO_SETTINGS, ids=lambda text: text[:14])
def test_variables_placeholders_and_words_are_no_values(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert scanned(tmp_path)[0] == ["a.yaml"]


def test_files_from_elsewhere_are_looked_at_too(tmp_path: Path) -> None:
    project, other = write(tmp_path / "p", "a"), write(tmp_path / "e", "b", "id_rsa")
    (other / "b").write_text(KEY)
    guard = ScanGuard()
    extra = {"more/b": other / "b", "more/id_rsa": other / "id_rsa"}
    assert [entry.path for entry in scan(project, extra=extra, guard=guard).entries] == ["a"]
    assert {item.path for item in guard.kept_back} == {"more/b", "more/id_rsa"}


def test_a_secret_that_cannot_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(source: Path) -> int:
        raise PermissionError(13, "Permission denied")

    write(tmp_path, "a.pem")
    monkeypatch.setattr(module, "opened", refused)
    with pytest.raises(InputError, match=r"a\.pem.*Permission denied"):
        scan(tmp_path)


def test_marks_are_remembered_until_the_table_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda now=time.time_ns: now() + 10_000_000_000)
    project, known = write(tmp_path / "p", "a"), tmp_path / "known.json"
    (project / "a").write_text(f"\n{KEY}")

    def lines() -> list[int | None]:
        guard = ScanGuard()
        scan(project, guard=guard, hashes=Hashes(known, project))
        return [item.line for item in guard.kept_back]

    assert lines() == [2]
    content = json.loads(known.read_text())
    content["files"]["a"][6][1] = 7
    known.write_text(json.dumps(content))
    assert lines() == [7], "it was not read again"
    for harm in ({"shapes": "other"}, {"files": {"a": [*content["files"]["a"][:6], ["no", 1]]}}):
        known.write_text(json.dumps(content | harm))
        assert lines() == [2]
