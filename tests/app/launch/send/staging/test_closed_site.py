"""A site that reaches nothing outside: files come over its host for files, jobs cannot download."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import LinkError
from lumitui.remote.site.states import State
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster, running_cluster
from tests.support.servers.link_proxy import LinkProxy, link_proxy

JOB = """\
name: closed
site: mini-mn5
account: ehpc01
partition: acc_debug
gpus_per_node: 1
launcher: srun
time: "00:05:00"
script: train.py
proof: "off"
args: [$STAGE_DATA, $STAGE_MODEL]
stage:
  DATA: ../data
  MODEL: ../model.bin
fetch: [code/result.txt]
"""
SCRIPT = """\
import hashlib, os, pathlib, socket, sys
assert os.environ["HF_HUB_OFFLINE"] == "1" and os.environ["WANDB_MODE"] == "offline"
assert len(os.listdir(sys.argv[1])) == 30
digest = hashlib.sha256(pathlib.Path(sys.argv[2]).read_bytes()).hexdigest()
pathlib.Path("result.txt").write_text(digest)
if "--download" in sys.argv:
    socket.create_connection(("1.1.1.1", 443), 20)
"""


@pytest.fixture(scope="module")
def closed() -> Iterator[Cluster]:
    with running_cluster("mn5-acc") as found:
        if not found.network:
            pytest.skip("network namespaces are not permitted here")
        yield found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root, data = tmp_path / "project", tmp_path / "data"
    root.mkdir()
    data.mkdir()
    for number in range(30):
        (data / str(number)).write_bytes(random.Random(number).randbytes(3000))
    (tmp_path / "model.bin").write_bytes(random.Random(4).randbytes(12_000_000))
    (root / "train.py").write_text(SCRIPT)
    return root


def behind(cluster: Cluster, proxy: LinkProxy, folder: Path) -> Cluster:
    """Describe the cluster with its host for files behind a proxy."""
    config, known_hosts = folder / "ssh_config", folder / "known_hosts"
    text = cluster.ssh_config.read_text().replace(str(cluster.known_hosts), str(known_hosts))
    config.write_text(text.replace(f"Port {cluster.transfer_port}", f"Port {proxy.port}"))
    keys = cluster.known_hosts.read_text()
    known_hosts.write_text(keys.replace(f"]:{cluster.transfer_port} ", f"]:{proxy.port} "))
    return replace(cluster, ssh_config=config, known_hosts=known_hosts)


@pytest.mark.cluster
def test_what_a_job_needs_comes_over_the_host_for_files_and_its_results_too(
    closed: Cluster, home: Home, project: Path, tmp_path: Path
) -> None:
    stage = f"{closed.scratch}/{closed.user}/lumitui/stage"
    closed.login(f"chmod -R u+w {stage}; rm -rf {stage}")
    with link_proxy(closed.transfer_port) as proxy:
        home.add_cluster(behind(closed, proxy, tmp_path), "mini-mn5", "mini-mn5")
        runs = Runs(home.settings)
        preview = runs.preview(parse_job(JOB, "job.yaml"), project)
        assert not preview.errors
        # The link is cut in the model; the send takes it up by itself and goes on there.
        proxy.cut_after(6_000_000, "up")
        told: list[str] = []
        run = runs.send(preview, report=lambda step, words: told.append(words))
        counts = proxy.stats()
        assert counts.cuts == 1 and 12_000_000 < counts.up < 15_000_000
        assert any("Retrying" in words for words in told)
        cost = runs.footprint("mini-mn5")
        assert cost.bytes_up > counts.up * 0.9 and cost.logins > 2, "both hosts count"
        assert runs.wait(run.id).state is State.DONE, runs.read_log(run.id)[1].decode()
        # Nothing is sent twice, whichever run asks for it.
        proxy.reset()
        other = runs.send(preview)
        assert proxy.stats().up < 50_000
        runs.cancel(other.id)
        # The results come over it, too.
        proxy.reset()
        brought = {one.name: one.path for one in runs.fetch(run.id, tmp_path / "got").files}
        assert brought["code/result.txt"].read_text() and proxy.stats().down > 1000
        owner = closed.login(f"stat -c %G {stage}/* | sort -u")
        assert owner.stdout.split() == ["ehpc01"]
        runs.close()


@pytest.mark.cluster
def test_a_job_that_would_download_fails_and_the_preview_said_so(
    closed: Cluster, home: Home, project: Path
) -> None:
    home.add_cluster(closed, "mini-mn5", "mini-mn5")
    (project / "train.py").write_text(SCRIPT + "def load():\n    MNIST('x', download=True)\n")
    job = parse_job(JOB.replace("$STAGE_MODEL]", "$STAGE_MODEL, --download]"), "job.yaml")
    runs = Runs(home.settings)
    preview = runs.preview(job, project)
    (said,) = [item for item in preview.findings if item.rule == "offline-script"]
    assert "MNIST(download=True)" in said.message and "`stage:`" in said.do
    run = runs.send(preview)
    assert runs.wait(run.id).state is State.FAILED
    assert b"Network is unreachable" in runs.read_log(run.id)[1]
    # A host for files that nobody vouches for is refused, and there is no job.
    text = closed.known_hosts.read_text().splitlines()
    known = home.data / "known_hosts"
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_text(text[0] + "\n")
    config = home.data / "ssh_config"
    whole = closed.ssh_config.read_text()
    config.write_text(whole.replace(str(closed.known_hosts), str(known)))
    home.add_cluster(replace(closed, ssh_config=config), "mini-mn5", "mini-mn5")
    again = Runs(home.settings)
    with pytest.raises(LinkError, match="key"):
        again.send(again.preview(job, project))
    (newest,) = again.history.page(limit=1)
    assert newest.state is State.NOT_SENT
    runs.close()
    again.close()
