"""A job that Slurm or the disk of a site refuses: the message names the cause."""

import os
from pathlib import Path

import pytest

from tests.support.program.command_line import lt
from tests.support.program.home import Home
from tests.support.servers.cluster import running_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

JOB = """\
name: hello
site: mini-mahti
account: project_2001659
partition: gpusmall
gpus_per_node: 4
time: "00:01:00"
launcher: srun
strategy: ddp
script: hello.sh
"""


def test_more_gpus_than_a_qos_allows_and_a_full_disk_are_named(home: Home, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(JOB)
    (tmp_path / "hello.sh").write_text("#!/bin/sh\n")
    with running_cluster("mahti") as cluster:
        home.add_cluster(cluster, "mini-mahti", "mini-mahti")
        done = lt(home, "submit", str(job), "--yes", "--force")
        assert "QOSMaxGRESPerJob" in done.stderr and "may not request that much" in done.stderr
        profile = home.config / "sites" / "mini-mahti.yaml"
        profile.write_text(f"{profile.read_text()}\nwork_root: {cluster.small}/{{user}}/lumitui\n")
        fill = Path(cluster.small) / "fill-refused"
        try:
            with fill.open("wb") as file, pytest.raises(OSError, match="No space"):
                while True:
                    file.write(b"\0" * 65536)
                    file.flush()
            os.truncate(fill, fill.stat().st_size - 24_576)  # enough for the code, not for the run
            done = lt(home, "submit", str(job), "--yes", "--force")
        finally:
            fill.unlink()
        assert done.returncode != 0 and "No space left on device" in done.stderr, done.stderr
