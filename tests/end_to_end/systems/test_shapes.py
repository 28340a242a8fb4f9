"""The mini clusters have what makes their sites different: limits, disks, refusals, cores."""

import pytest

from tests.support.servers.cluster import Cluster
from tests.support.systems.running import Systems

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def refused(cluster: Cluster, options: str) -> str:
    """Return the words with which sbatch refuses a job; fails if it takes it."""
    given = f"--account={cluster.account} --time=5 --test-only {options}"
    answer = cluster.login(f"sbatch {given} --wrap true")
    assert answer.returncode != 0, f"{options} was accepted"
    return answer.stderr


def says(cluster: Cluster, options: str, script: str) -> str:
    """Return what a shell prints as a job's step."""
    given = f"--account={cluster.account} --time=5 {options}"
    answer = cluster.login(f"srun {given} bash -c '{script}'", timeout=120)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def test_puhti_gives_a_disk_to_jobs_that_ask_for_it_and_limits_gpus(systems: Systems) -> None:
    cluster = systems.of("puhti").cluster
    asks = "--partition=gputest --gres=gpu:v100:1"
    assert says(cluster, asks, 'echo "[$LOCAL_SCRATCH]"') == "[]"
    folder = says(cluster, f"{asks},nvme:200", 'cd "$LOCAL_SCRATCH" && touch x && pwd')
    assert folder.startswith("/tmp/disk-")
    node = f"{cluster.root}/nodes/{cluster.nodes[0]}{folder}"
    assert cluster.login(f"[ -e {node} ]").returncode == 1, "the job's disk is emptied"
    words = refused(cluster, "--partition=gputest --nodes=2 --gres=gpu:v100:4,nvme:4000")
    assert "node configuration is not available" in words


def test_mahti_limits_gpus_by_partition_and_counts_cores_not_threads(systems: Systems) -> None:
    cluster = systems.of("mahti").cluster
    assert "Node count" in refused(cluster, "--partition=gputest --nodes=2 --gres=gpu:a100:1")
    assert "QOSMaxGRESPerJob" in refused(cluster, "--partition=gpusmall --gres=gpu:a100:3")
    asks = "--partition=gpumedium --gres=gpu:a100:4 --cpus-per-task=32"
    assert says(cluster, asks, "nproc; taskset -cp $$").endswith(": 0-31")


def test_roihu_has_288_cores_and_partitions_by_size(systems: Systems) -> None:
    cluster = systems.of("roihu").cluster
    medium = "--partition=gpumedium --nodes=2 --gres=gpu:gh200:4"
    assert "QOSMaxGRESPerJob" in refused(cluster, medium)
    large = "--partition=gpularge --gres=gpu:gh200:2"
    assert "QOSMinGRES" in refused(cluster, large)
    asks = "--partition=gputest --gres=gpu:gh200:4 --ntasks=4 --cpus-per-task=72 --label"
    cores = says(cluster, asks, "taskset -cp $$").splitlines()
    assert sorted(line.rpartition(" ")[2] for line in cores) == [
        "0-71",
        "144-215",
        "216-287",
        "72-143",
    ]


def test_karolina_brings_an_eighth_of_a_node_with_each_gpu(systems: Systems) -> None:
    cluster = systems.of("karolina").cluster
    assert "QOSMinNode" in refused(cluster, "--partition=qgpu_big --nodes=2 --gpus-per-node=8")
    asks = "--partition=qgpu --gpus=1"
    allocated = says(cluster, asks, "echo $SLURM_CPUS_ON_NODE $SLURM_MEM_PER_GPU")
    assert allocated.split()[0] == "16"


def test_marenostrum_refuses_too_few_cores_and_any_memory(systems: Systems) -> None:
    cluster = systems.of("mn5").cluster
    few = "--qos=acc_debug --gres=gpu:4 --cpus-per-task=20"
    assert "HARD REJECTED: Required cpus: 80" in refused(cluster, few)
    memory = "--qos=acc_debug --gres=gpu:1 --cpus-per-task=20 --mem=8G"
    assert "HARD REJECTED: --mem" in refused(cluster, memory)
    assert "Invalid qos" in refused(cluster, "--gres=gpu:1 --cpus-per-task=20")
    long = "--qos=acc_debug --gres=gpu:1 --cpus-per-task=20 --time=3:00:00"
    assert "QOSMaxWallDurationPerJobLimit" in refused(cluster, long)
