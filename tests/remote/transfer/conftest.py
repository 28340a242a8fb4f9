"""The transports that snapshots are tested over."""

from collections.abc import Iterator

import pytest

from lumitui.remote.transport.transport import Transport
from tests.support.servers.transports import open_transport

# sshd starts the same shell and the same programs as `sh` here does.
KINDS = [pytest.param("sh", marks=pytest.mark.slow), "busybox", "ssh"]


@pytest.fixture(scope="module", params=KINDS)
def transport(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Transport]:
    """Each transport in turn."""
    with open_transport(request.param, tmp_path_factory.mktemp("site")) as opened:
        yield opened
