"""What a job file may hold in all."""

import pytest

from lumitui.app.job.spec import MOST_ARGUMENTS, JobSpec, changed, parse_job
from lumitui.remote.site.errors import InputError

JOB = (
    'name: x\nsite: laptop\npartition: local\ntime: "00:05:00"\nscript: train.py\nargs: [{args}]\n'
)


def job(count: int) -> JobSpec:
    return parse_job(JOB.format(args=",".join(["a"] * count)), "job.yaml")


def test_a_list_of_arguments_that_belongs_into_a_file_is_refused() -> None:
    assert len(job(MOST_ARGUMENTS).args) == MOST_ARGUMENTS
    with pytest.raises(
        InputError, match=r"job\.yaml:6: args: 5,001 arguments exceed the limit of 5,000"
    ):
        job(MOST_ARGUMENTS + 1)
    with pytest.raises(InputError, match="100,000 arguments"):
        changed(job(1), {"args": ["a"] * 100_000}, "--set")
