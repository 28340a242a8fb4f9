"""What git leaves out is left out: compared with git itself, over many trees and patterns."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tests.support.files.project_files import shipped

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git decides what is right")


@pytest.fixture(autouse=True)
def own_git(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the developer's own git out of it; returns the folder of the person's own settings."""
    config = tmp_path_factory.mktemp("config")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    monkeypatch.setenv("HOME", str(config))
    return config


def git(root: Path, *words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True).stdout


def listed(root: Path) -> list[str]:
    """What git ships: what it tracks, and what it does not know and does not leave out."""
    out = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted(filter(None, (os.fsdecode(name) for name in out.split(b"\0"))))


def make(root: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


_name = st.sampled_from(["a", "b", "ab", "a.b", "#a", "!b", "a b", "b ", "é"])
_path = st.lists(_name, min_size=1, max_size=3).map("/".join)
_atom = st.sampled_from(
    ["a", "b", "ab", "*", "**", "?", "a*", "*.b", "[ab]", "[!a]", "\\#a", "\\!b", "#a", "!b", "a b",
     "b\\ ", "é", "a\\b"]
)  # fmt: skip
_pattern = st.builds(
    lambda negated, anchored, parts, folder, tail: (
        ("!" if negated else "") + ("/" if anchored else "") + "/".join(parts)
        + ("/" if folder else "") + tail
    ),
    st.booleans(), st.booleans(), st.lists(_atom, min_size=1, max_size=3), st.booleans(),
    st.sampled_from(["", "", "", " ", "  ", "\t"]),
)  # fmt: skip
_list = st.builds(
    lambda lines, end, mark: mark + end.join([*lines, ""]).encode(),
    st.lists(st.one_of(_pattern, st.sampled_from(["", "# a", " "])), min_size=1, max_size=4),
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
)


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    st.lists(_path, min_size=1, max_size=8),
    _list,
    st.dictionaries(st.sampled_from(["a", "b", "a/b", "ab"]), _list, max_size=2),
    st.one_of(st.none(), _list),
    st.one_of(st.none(), _list),
)
@example(["a/b/x", "a/b/y"], b"a/*\n!a/b\n", {}, None, None)
@example(["a/x"], b"a/\n!a/x\n", {"a": b"!x\n"}, None, None)
@example(["a/b/c/x", "x"], b"a/**/x\n**/c/\n", {}, None, None)
@example(["a", "b"], b"*\n!*/\n!b\n", {}, b"!a\n", b"b\n")
def test_the_same_files_as_git_s(
    paths: list[str],
    outer: bytes,
    nested: dict[str, bytes],
    own: bytes | None,
    personal: bytes | None,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        git(root, "init", "-q")
        taken: set[str] = set()
        for path in paths:
            parents = {path.rpartition("/")[0][:n] for n in range(1, len(path))}
            if not (root / path).exists() and not parents & taken:
                try:
                    make(root, {path: b""})
                except (NotADirectoryError, FileExistsError, IsADirectoryError):
                    continue
        (root / ".gitignore").write_bytes(outer)
        for at, lines in nested.items():
            if (root / at).is_dir():
                (root / at / ".gitignore").write_bytes(lines)
        for where, text in (
            (root / ".git/info/exclude", own),
            (Path(os.environ["XDG_CONFIG_HOME"]) / "git/ignore", personal),
        ):
            where.parent.mkdir(exist_ok=True)
            where.write_bytes(text or b"")
        assert shipped(root) == listed(root)


def test_a_part_of_a_repository_obeys_the_lists_above_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {
        ".gitignore": b"*.pt\n/sub/data/\nother/\n", "sub/x.pt": b"", "sub/data/y": b"",
        "sub/train.py": b"", "sub/deep/z.pt": b"", "sub/deep/.gitignore": b"!z.pt\n",
        "other/train.py": b"", "other/x.pt": b"",
    })  # fmt: skip
    expected = ["deep/.gitignore", "deep/z.pt", "train.py"]
    assert shipped(tmp_path / "sub") == listed(tmp_path / "sub") == expected
    # A folder that the list leaves out as a whole was named as the project: it is meant.
    assert shipped(tmp_path / "other") == ["train.py", "x.pt"]


def test_what_git_tracks_is_shipped_whatever_the_lists_say(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(
        tmp_path, {".gitignore": b"data/\n*.log\n", "data/kept/a": b"", "data/b": b"", "c.log": b""}
    )
    git(tmp_path, "add", "-f", "data/kept/a", "c.log")
    assert shipped(tmp_path) == listed(tmp_path) == [".gitignore", "c.log", "data/kept/a"]
    make(tmp_path, {".lumituiignore": b"c.log\n"})
    assert "c.log" not in shipped(tmp_path)


def test_the_person_s_own_list_is_read_where_git_is_told_it_is(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {"p/a.tmp": b"", "p/b": b"", "mine": b"*.tmp\n"})
    git(tmp_path, "config", "core.excludesFile", str(tmp_path / "mine"))
    assert shipped(tmp_path / "p") == listed(tmp_path / "p") == ["b"]


def test_a_worktree_has_the_repository_s_own_list(tmp_path: Path) -> None:
    first = make(tmp_path / "first", {"a": b""})
    git(first, "init", "-q")
    git(first, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-mx")
    (first / ".git/info/exclude").write_text("*.tmp\n")
    git(first, "worktree", "add", "-q", str(tmp_path / "second"))
    make(tmp_path / "second", {"b.tmp": b"", "c": b""})
    assert shipped(tmp_path / "second") == listed(tmp_path / "second") == ["c"]


def test_a_list_that_is_a_link_or_a_folder_is_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {"list": b"*.log\n", "a.log": b"", "d/.gitignore/x": b"", "d/b.log": b""})
    (tmp_path / ".gitignore").symlink_to("list")
    assert shipped(tmp_path) == listed(tmp_path)
    assert "a.log" in shipped(tmp_path)


def test_without_git_the_lists_in_the_project_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {".gitignore": b"*.log\n", "a.log": b"", "b": b""})
    monkeypatch.setenv("PATH", "/nowhere")
    assert shipped(tmp_path) == [".gitignore", "b"]
