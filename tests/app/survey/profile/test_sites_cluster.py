"""The profile that `site add` and the probe write for clusters in the shape of real sites."""

from pathlib import Path

import pytest

from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import Sites
from tests.support.program.command_line import lt
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster, running_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SCRIPT = """\
#!/bin/bash
#SBATCH --account=project_2001659
#SBATCH --partition=gpumedium
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --gres=gpu:a100:4
#SBATCH --time=1:00:00
module load pytorch/2.9
srun --cpus-per-task=32 --cpu-bind=cores python3 train.py
"""


def added(home: Home, cluster: Cluster) -> Site:
    """Return the profile `hydra` that `site add` writes for the cluster."""
    config = home.config / "ssh_config"
    config.write_text(
        cluster.ssh_config.read_text().replace("Host minilumi", "Host minilumi hydra")
    )
    done = lt(home, "site", "add", "hydra", "--ssh-config", str(config))  # an alias is its own host
    assert done.returncode == 0, done.stderr
    return written(home)


def written(home: Home) -> Site:
    return Sites([home.config / "sites"]).load("hydra")


def test_a_site_like_mahti_is_described_so_that_a_good_script_has_no_finding(
    home: Home, tmp_path: Path
) -> None:
    with running_cluster("mahti") as cluster:
        site = added(home, cluster)
        # DefMemPerGPU: a job gets its memory without a request.
        assert (site.memory_per_gpu, site.memory_per_node, site.cores_per_gpu) == ("", "", 32)
        assert all(one.whole_when_full for one in site.partitions.values())
        assert (site.modules, site.default_container) == (("module load pytorch/2.9",), None)
        assert site.node.gres_types == ("a100",)
        profile = home.config / "sites" / "hydra.yaml"
        assert "missing: local_disk: the nodes have the gres nvme:3500" in profile.read_text()
        probe = lt(home, "site", "check", "hydra", "--probe", "--write", "--yes")
        assert probe.returncode == 0, probe.stderr
        site = written(home)
        # The key of the login is a guess: a check of the file alone, as in a CI, has no warning.
        assert site.hosts.fingerprints and site.python_on_compute_nodes is not False
        checked = lt(home, "site", "check", "--file", str(profile))
        assert checked.returncode == 0, checked.stdout
        # Half of the node is near no GPU, but belongs to its jobs.
        assert (site.cores_per_gpu, len(site.node.cores_of_gpu[0])) == (32, 16)
        assert site.containers["singularity"].image == ""
        assert "(not below `node`" in profile.read_text().replace("\n# ", " ")
        script = tmp_path / "good.sh"
        script.write_text(SCRIPT)
        assert "Nothing found" in (found := lt(home, "lint", "--site", "hydra", str(script))).stderr
        assert found.stdout == "" or "good.sh:" not in found.stdout
        # The QOS of a partition has its limit in GPUs.
        profile.write_text(profile.read_text().replace("max_gpus: 2\n", "max_gpus: 8\n"))
        check = lt(home, "site", "check", "hydra")
        assert "partition gpusmall: max_gpus 2; the profile has 8" in check.stdout
        assert check.stdout.count("warning") == 1, check.stdout


def test_a_site_like_karolina_gives_cores_with_its_gpus(home: Home) -> None:
    with running_cluster("karolina") as cluster:
        site = added(home, cluster)
    assert (site.cores_per_gpu, site.cores_with_gpus, site.memory_per_gpu) == (16, True, "")
