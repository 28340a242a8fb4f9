"""The steps of the guide, the keys it lists, and the answers it keeps."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.job.settings import is_first_run
from lumitui.app.runs.guide import (
    GuideAnswers,
    Surroundings,
    keep_progress,
    kept_progress,
    keys_in,
    missing,
    profile_text,
    steps,
)
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.accounts import own_account
from tests.support.program.home import Home
from tests.support.servers.sshd import new_key

CLUSTER = next(
    site
    for site in map(Sites([BUILT_IN]).load, Sites([BUILT_IN]).names())
    if site.hosts.login and not re.match(site.account.pattern, "nonsense")
)
"""A cluster whose accounts have a form."""


def test_keys_are_listed_by_their_public_half_alone(tmp_path: Path) -> None:
    assert keys_in(tmp_path / "nothing") == ()
    new_key(tmp_path / "id_ed25519")
    (tmp_path / "id_ed25519").chmod(0)  # the private half is not opened
    new_key(tmp_path / "gone").unlink()
    (tmp_path / "words.pub").write_text("no key at all\n")
    (tmp_path / "words").write_text("")
    (tmp_path / "folder.pub").mkdir()
    (tmp_path / "binary.pub").write_bytes(b"\xff\xfe")
    (tmp_path / "binary").write_text("")
    before = sorted(tmp_path.iterdir())
    (key,) = keys_in(tmp_path)
    assert (key.path, key.kind, key.comment) == (
        tmp_path / "id_ed25519",
        "ssh-ed25519",
        "id_ed25519",
    )
    assert sorted(tmp_path.iterdir()) == before  # none is made


def test_a_checked_site_shows_the_free_space_of_its_work_root(tmp_path: Path) -> None:
    around = Surroundings(CLUSTER, tmp_path / "x.yaml", False, ())
    told = GuideAnswers(site=CLUSTER.name, checked=True, space="/w, 511.0 MiB free")
    (words,) = [step.words for step in steps(told, around) if step.name == "check"]
    assert words == "Checked. The work root: /w, 511.0 MiB free."


def test_each_step_waits_for_those_before_it(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("")
    (tmp_path / "id.pub").write_text("ssh-ed25519 AAAA me@here\n")
    around = Surroundings(None, tmp_path / "x.yaml", False, keys_in(tmp_path))
    answers = GuideAnswers()
    found = steps(answers, around)
    assert [step.mark for step in found] == ["next", *["later"] * 6]
    assert missing(found, "check") == "site"
    around = replace(around, site=CLUSTER)
    for answer, then in (
        ({"site": CLUSTER.name}, "user"),
        ({"user": "two words"}, "user"),
        ({"user": "me"}, "key"),
        ({"key": "/elsewhere"}, "key"),
        ({"key": str(tmp_path / "id")}, "project"),
        ({"account": "nonsense"}, "project"),
        ({"account": own_account(CLUSTER)}, "check"),
        ({"checked": True}, "job"),
    ):
        answers = answers.model_copy(update=answer)
        found = steps(answers, around)
        assert [step.name for step in found if step.mark == "next"] == [then], answer
    assert missing(found, "job") == ""
    # A surveyed cluster is measured next, but a job needs only the check.
    node = CLUSTER.node.model_copy(update={"gpu_cores": ()})
    surveyed = replace(around, site=CLUSTER.model_copy(update={"node": node}))
    found = steps(answers, surveyed)
    assert [step.name for step in found if step.mark == "next"] == ["measure"]
    assert missing(found, "job") == ""
    # A profile of the person's own says user and key.
    found = steps(GuideAnswers(site=CLUSTER.name), replace(around, foreign=True))
    assert [step.mark for step in found] == [*["done"] * 3, "next", "later", "done", "later"]


def test_the_profile_that_is_written_can_be_read(tmp_path: Path) -> None:
    answers = GuideAnswers(site=CLUSTER.name, user="me", key='/home/me/.ssh/id "x": #1')
    path = tmp_path / f"{CLUSTER.name}.yaml"
    path.write_text(profile_text(answers, path))
    site = Sites([tmp_path, BUILT_IN]).load(CLUSTER.name)
    assert (site.hosts.user, site.hosts.identity) == ("me", answers.key)
    assert site.hosts.login == CLUSTER.hosts.login and site.node == CLUSTER.node
    # Another login keeps what follows it, such as a measured node.
    path.write_text(path.read_text() + "node: {}\n")
    text = profile_text(GuideAnswers(site=CLUSTER.name, user="you"), path)
    assert text.endswith('hosts:\n  user: "you"\nnode: {}\n')


@pytest.mark.parametrize("text", ["", "{", "[]", '{"site": 5}', '{"user": "' + "x" * 300 + '"}'])
def test_answers_are_kept_and_nonsense_is_none(home: Home, text: str) -> None:
    assert is_first_run(home.settings) and kept_progress(home.settings) == GuideAnswers()
    home.data.mkdir(exist_ok=True)
    home.settings.guide.write_text(text)
    assert kept_progress(home.settings) == GuideAnswers() and not is_first_run(home.settings)
    keep_progress(home.settings, GuideAnswers(user="me"))
    assert kept_progress(home.settings).user == "me"
    assert home.settings.guide.stat().st_mode & 0o777 == 0o600
