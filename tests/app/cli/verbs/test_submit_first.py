"""`submit --first`: one job, at the place where it starts first."""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.cli.verbs.jobs.where_verb import first_place
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Price
from lumitui.app.job.spec import JobSpec
from lumitui.app.runs import Preview, Runs, StartPlace
from lumitui.remote.site.errors import InputError, LinkError
from tests.support.program.command_line import CLUSTER, LAPTOP, Here, told, write

LUMI = CLUSTER | {"site": "lumi", "memory": "60G", "proof": "off", "script": "train.py"}
NOW = time.time()


def place(site: str, start: float | None, refusal: str = "", **changes: object) -> StartPlace:
    known = {} if site == "lumi" else {"site": site}
    return StartPlace(site, "small-g", 1, known | changes, refusal, start=start)


@pytest.mark.parametrize(
    "places, expected",
    [
        ([place("lumi", NOW + 2000), place("mn5", NOW + 1000)], "mn5"),
        ([place("lumi", None), place("mn5", NOW + 1000)], "mn5"),
        ([place("mn5", NOW - 1), place("lumi", NOW + 1)], "lumi"),
        ([place("lumi", NOW + 2000), place("mn5", NOW + 1000, "It is closed.")], "lumi"),
    ],
)
def test_the_earliest_known_start_wins(places: list[StartPlace], expected: str) -> None:
    assert first_place(places).site == expected


def test_of_places_that_start_in_the_same_minute_it_is_the_own_one_or_the_cheapest() -> None:
    def priced(partition: str, amount: float, unit: str = "GPU-hours") -> StartPlace:
        there = place("lumi", NOW, partition=partition)
        return replace(there, partition=partition, price=Price(amount, unit, amount))

    whole, shared = priced("standard-g", 8.0), priced("dev-g", 1.0)
    assert first_place([whole, shared]) is shared
    assert first_place([whole, shared, own := replace(whole, changes={})]) is own
    # Another unit is no price to compare with.
    assert first_place([whole, priced("gpularge", 0.1, "billing units")]) is whole


def test_a_partition_for_trials_or_with_preemption_wins_only_if_named_or_alone() -> None:
    def at(
        partition: str, start: float | None, caution: str = "", named: bool = False
    ) -> StartPlace:
        changes = {} if named else {"partition": partition}
        return StartPlace("lumi", partition, 1, changes, start=start, caution=caution)

    trials, spare = at("dev-g", NOW, "for trials"), at("spare-g", NOW + 100, "preemptible")
    late = at("small-g", NOW + 9000)
    assert first_place([trials, spare, late]) is late
    named = at("dev-g", NOW, "for trials", named=True)
    assert first_place([named, spare, late]) is named
    closed = replace(late, refusal="It is closed.")
    assert first_place([trials, spare, closed]) is trials
    with pytest.raises(InputError, match="No site estimates when"):
        first_place([trials, spare, replace(late, start=None)])


def test_where_no_start_is_known_the_user_chooses() -> None:
    with pytest.raises(InputError, match="No site estimates when"):
        first_place([place("lumi", None), place("mn5", 10.0, "It is closed.")])


def test_a_key_that_is_left_out_has_its_default() -> None:
    there = place("mn5", 10.0, memory=None, modules=None, account="a")
    assert there.values == {"site": "mn5", "memory": None, "modules": (), "account": "a"}
    assert {key: JobSpec.model_fields[key].default for key in ("memory", "modules")} == {
        "memory": None, "modules": ()
    }  # fmt: skip


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text("print(1)\n")

    def start_places(self: Runs, job: Path, *, sites: Mapping[str, str]) -> tuple[StartPlace, ...]:
        assert sites == {"lumi": "", "laptop": "none"}
        late = place("lumi", NOW + 9000)
        early = place(
            "laptop", NOW, partition="local", account="none", memory=None, gpus_per_node=1
        )
        return late, replace(early, partition="local")

    monkeypatch.setattr(Runs, "start_places", start_places)
    return write(tmp_path / "job.yaml", LUMI)


def test_it_is_sent_once_with_the_keys_changed(here: Here, job: Path) -> None:
    done = here("submit", str(job), "--first", "lumi,laptop=none", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert "It starts first at laptop, in local." in done.stderr
    assert json.loads(here("history", "--json").stdout)["data"][0]["site"] == "laptop"
    assert len(json.loads(here("history", "--json").stdout)["data"]) == 1


def test_places_that_are_not_considered_are_listed(
    here: Here, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = StartPlace("lumi", "dev-g", 1, {"partition": "dev-g"}, start=NOW, caution="for trials")
    far = StartPlace("lumi", "small-g", 1, {}, start=NOW + 9000)
    monkeypatch.setattr(Runs, "start_places", lambda *args, **rest: (near, far))
    done = here("submit", str(job), "--first", "lumi")
    assert "Not considered: dev-g (for trials). To use one, set it as `partition:`." in done.stderr
    assert "It starts first at lumi, in small-g." in done.stderr


def test_no_other_site_is_tried_where_the_send_fails(
    here: Here, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def send(self: Runs, preview: Preview, **rest: Any) -> Run:
        sent.append(preview.site.name)
        raise LinkError("The link died.", "Try again.")

    monkeypatch.setattr(Runs, "send", send)
    told(here("submit", str(job), "--first", "lumi,laptop=none", "--yes"), 3, "The link died")
    assert sent == ["laptop"]


def test_a_refusal_of_the_question_sends_nothing(here: Here, job: Path) -> None:
    done = here("submit", str(job), "--first", "lumi,laptop=none")
    assert done.returncode != 0 and "STARTS" in done.stderr
    assert json.loads(here("history", "--json").stdout)["data"] == []


def test_it_excludes_what_belongs_to_one_site(here: Here, tmp_path: Path) -> None:
    path = str(write(tmp_path / "job.yaml", LAPTOP))
    told(here("submit", path, "--first", "laptop", "--after", "x"), 2, "cannot be combined")
    told(here("submit", path, "--first", "laptop", "--rest"), 2, "cannot be combined")


@pytest.mark.parametrize("sites", ["", " , "])
def test_without_a_site_it_compares_nothing_and_sends_nothing(
    here: Here, tmp_path: Path, sites: str
) -> None:
    path = str(write(tmp_path / "job.yaml", LAPTOP))
    told(here("submit", path, "--first", sites, "--yes"), 2, "--first needs a site")
    assert json.loads(here("history", "--json").stdout)["data"] == []
