"""Settings that stand for a remedy: nodes to keep off, half the batch."""

import pytest

from lumitui.app.job.setting import half_batch, without_nodes
from lumitui.app.scale.rescale import apply_settings
from lumitui.remote.site.errors import InputError
from tests.support.jobs.small_jobs import hello_job


def test_a_job_keeps_off_a_node_besides_those_it_avoids_already() -> None:
    spec = hello_job(sbatch=["--comment=x", "--exclude=nid005001"])
    again = apply_settings(spec, [without_nodes(spec, "nid005002")])
    assert again.sbatch == ("--comment=x", "--exclude=nid005001,nid005002")
    twice = apply_settings(again, [without_nodes(again, "nid005002")])
    assert twice.sbatch == again.sbatch


def test_what_is_no_list_of_nodes_is_refused() -> None:
    with pytest.raises(InputError, match="not a list of nodes"):
        without_nodes(hello_job(), "nid005001 --account=other")


def test_the_batch_of_each_rank_is_halved() -> None:
    spec = hello_job(args=["--batch-size", "32"], scale={"batch": {"arg": "--batch-size"}})
    assert half_batch(spec) == "--batch-size=16"
    assert apply_settings(spec, [half_batch(spec)]).args == ("--batch-size", "16")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "does not name the argument"),
        ({"scale": {"batch": {"arg": "-b"}}}, "is not in `args:`"),
        (
            {"scale": {"batch": {"arg": "-b"}}, "args": ["-b", "1"]},
            "Cannot halve the batch size: -b is 1",
        ),
    ],
)
def test_a_batch_that_cannot_be_halved_is_said(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        half_batch(hello_job(**changes))
