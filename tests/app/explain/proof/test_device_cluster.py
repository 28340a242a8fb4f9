"""Real tasks on a node of the mini cluster whose driver shows other GPUs than planned."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.binding.binding_jobs import Proving, where_job
from tests.support.servers.cluster import Cluster


@contextmanager
def faulty(cluster: Cluster, node: str) -> Iterator[None]:
    """Two GPUs of `node` have changed places, and the last one is gone."""
    nodes = cluster.root / "nodes" / node / "driver" / "kfd" / "kfd" / "topology" / "nodes"
    kept = cluster.root / "nodes" / node / "topology"
    shutil.copytree(nodes, kept)
    try:
        # The first four are CPUs.
        (nodes / "5" / "properties").write_text((kept / "6" / "properties").read_text())
        (nodes / "6" / "properties").write_text((kept / "5" / "properties").read_text())
        shutil.rmtree(nodes / "11")
        yield
    finally:
        shutil.rmtree(nodes)
        shutil.move(kept, nodes)


def test_wrong_devices_are_named_and_strict_ends_the_job(proving: Proving) -> None:
    node = proving.cluster.nodes[-1]
    here = [f"--nodelist={node}"]
    with faulty(proving.cluster, node):
        warned, ended = proving.finish(
            [
                proving.send(where_job(container="laif", sbatch=here)),
                proving.send(where_job(ranks=4, proof="strict", sbatch=here)),
            ]
        )
    assert (warned.state, ended.state, ended.rc) == (State.DONE, State.FAILED, 78)
    found = proving.runs.proof(warned)
    # Seven GPUs instead of eight are every rank's trouble.
    assert found.kind == "differs" and "shows 7 GPUs, planned 8" in found.sentence
    found = proving.runs.proof(ended)
    assert [row.rank for row in found.rows if not row.ok] == [1, 2]
    assert "it sees GPU 0000:c9:00.0, planned c6" in found.sentence
    why = proving.runs.why(ended.id)[0]
    assert why.id == "proof-strict" and "local rank 1 its GPU c6 on 0 of 1 nodes" in why.sentence
    assert proving.where(ended) == []
