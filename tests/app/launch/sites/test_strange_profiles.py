"""A profile with a number that cannot be: refused with its key, or harmless; never a crash."""

import math
from collections.abc import Iterator

import pytest

from lumitui.app.job.spec import JobSpec, changed
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.validation import validate
from lumitui.remote.site.reading.yaml_document import Document
from tests.support.jobs.sites.lumi_job import JOB, LUMI

STRANGE = [0, -1, 0.5, 10**30, 10**400, 1e308, 5e-324, math.inf, -math.inf, math.nan]
DATA = LUMI.model_dump(mode="json")
JOBS = [
    JOB,
    changed(JOB, {"partition": "small-g", "gpus_per_node": 2}, "t"),
    changed(JOB, {"launcher": "torchrun", "nodes": 4, "memory": "0"}, "t"),
]


def numbers(data: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield where there are numbers in a profile; of a list, its first item."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from numbers(value, (*place, key))
    elif isinstance(data, list) and data:
        yield from numbers(data[0], (*place, 0))
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield place


def replaced(data: object, place: tuple[str | int, ...], value: object) -> object:
    if not place:
        return value
    first, *rest = place
    if isinstance(data, dict):
        return data | {first: replaced(data[first], tuple(rest), value)}
    assert isinstance(data, list)
    return [replaced(data[0], tuple(rest), value), *data[1:]]


@pytest.mark.parametrize("place", list(numbers(DATA)), ids=lambda place: ".".join(map(str, place)))
def test_no_number_of_a_profile_crashes_a_preview(place: tuple[str | int, ...]) -> None:
    for value in STRANGE:
        data = replaced(DATA, place, value)
        assert isinstance(data, dict)
        try:
            site = validate(Document("", "mine.yaml"), Site, data)
        except InputError as error:
            assert str(place[-1]) in error.message or "mine.yaml" in error.message
            continue
        for spec in JOBS:
            previewed(spec, site)


def previewed(spec: JobSpec, site: Site) -> None:
    try:
        launch = compose(spec, site)
    except InputError:
        return
    findings(launch, site)
    assert math.isfinite(launch.price.amount) and launch.price.amount >= 0
