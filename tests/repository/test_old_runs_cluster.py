"""What tests left on the mini cluster goes, whatever state it is in."""

from uuid import uuid4

import pytest

from tests.support.servers.cluster import Cluster, forget_old_runs

pytestmark = pytest.mark.cluster


def test_old_runs_go_with_marks_that_lead_nowhere(cluster: Cluster) -> None:
    project = f"{cluster.scratch}/{cluster.user}/lumitui/test_old-{uuid4().hex[:6]}"
    old = f"{project}/runs/old/code {project}/sent/to-nowhere"
    cluster.login(
        f"mkdir -p {project}/sent {project}/runs/old/code {project}/runs/new"
        f" && touch {project}/runs/old/code/train.py"
        f" && ln -s {project}/runs/gone {project}/sent/to-nowhere"
        f" && chmod -R a-w {project}/runs/old"
        f" && touch -h -d '1 hour ago' {project}/runs/old {project}/sent/to-nowhere"
    )
    forget_old_runs(cluster)
    left = cluster.login(f"ls -d {project}/runs/* {old} 2>/dev/null").stdout.split()
    assert left == [f"{project}/runs/new"]
