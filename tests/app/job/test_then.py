"""`then:`: jobs that follow one after the other, each with only the keys that differ."""

import pytest

from lumitui.app.job.grid import cells
from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.remote.site.errors import InputError

JOB = """name: vit
site: lumi
partition: small-g
nodes: 4
time: "02:00:00"
script: train.py
args: [--lr, "0.1"]
resume: [--resume]
chain: 3
env: {A: "1"}
after: data
then:
  evaluate:
    script: evaluate.py
    nodes: 1
  again: {time: "01:00:00", when: any}
"""


def _jobs(text: str = JOB) -> list[JobSpec]:
    return [cell.spec for cell in cells(parse_job(text, "job.yaml"))]


def test_each_names_only_what_differs_from_the_first() -> None:
    vit, evaluate, again = _jobs()
    assert (vit.name, evaluate.name, again.name) == ("vit", "vit-evaluate", "vit-again")
    assert (vit.nodes, evaluate.nodes, again.nodes) == (4, 1, 4)
    assert vit.after and not evaluate.after and not any(job.then for job in (vit, evaluate))
    assert evaluate.env == {"A": "1"} and again.time == "01:00:00"
    every = cells(parse_job(JOB, "job.yaml"))
    assert [cell.follows for cell in every] == [None, "done", "any"]
    assert [cell.words for cell in every] == ["vit", "evaluate", "again"]


def test_another_program_takes_over_no_arguments() -> None:
    vit, evaluate, again = _jobs()
    assert evaluate.script == "evaluate.py" and evaluate.args == () and evaluate.resume == ()
    assert (vit.chain, evaluate.chain, again.chain) == (3, 1, 3)
    assert again.args == vit.args == ("--lr", "0.1")
    trained = _jobs(JOB.replace("script: train.py", "trainer: ddp"))
    assert trained[1].trainer is None and trained[1].script == "evaluate.py"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("nodes: 1", "nods: 1", "job.yaml:15: then.evaluate.nods: unknown key; did you mean"),
        ("nodes: 1", "nodes: many", "job.yaml:15: then.evaluate.nodes"),
        ("nodes: 1", "when: never", "job.yaml:15: then.evaluate.when"),
        ("nodes: 1", "site: puhti", "evaluate under `then:` sets site"),
        ("nodes: 1", "then: {}", "evaluate under `then:` sets then"),
        ("evaluate:", 'eva\'luate "it":', 'job.yaml:13: then.eva\'luate "it"'),
        ("evaluate:", "$(id):", "job.yaml:13: then.$(id)"),
        ("script: evaluate.py", "trainer: ddp\n    script: x.py", "job.yaml:13: then.evaluate"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        _jobs(JOB.replace(old, new))
    assert words in error.value.message


def test_a_grid_and_a_sequence_exclude_each_other() -> None:
    with pytest.raises(InputError, match="cannot be combined"):
        _jobs(JOB + "grid: {lr: [1, 2]}\n")


def test_a_long_name_keeps_the_end_that_tells_jobs_apart() -> None:
    long = _jobs(JOB.replace("name: vit", f"name: {'v' * 100}"))
    assert long[1].name.endswith("v-evaluate") and len(long[1].name) == 100
