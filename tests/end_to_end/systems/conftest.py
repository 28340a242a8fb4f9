"""The mini clusters of the sites' shapes, for the rows that run there."""

from collections.abc import Iterator

import pytest

from tests.support.systems.running import Systems


@pytest.fixture(scope="module")
def systems(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Systems]:
    """The mini clusters of the sites, one at a time."""
    found = Systems(request.session.items, tmp_path_factory.mktemp("environment"))
    try:
        yield found
    finally:
        found.close()
