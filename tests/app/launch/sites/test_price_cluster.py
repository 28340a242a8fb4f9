"""The price counts what Slurm allocates, on whole nodes more than the job requests."""

import pytest

from lumitui.app.job.spec import changed
from lumitui.app.launch.compose import compose
from lumitui.remote.site.partition import SumBilling
from tests.support.jobs.sites.lumi_job import JOB, LUMI
from tests.support.jobs.small_jobs import wait_until
from tests.support.servers.cluster import Cluster

pytestmark = pytest.mark.cluster
BILLING = SumBilling(per_core_hour=1, per_gib_hour=0.125, per_gpu_hour=1000)
SITE = LUMI.model_copy(
    update={
        "partitions": {
            name: partition.model_copy(update={"billing": BILLING})
            for name, partition in LUMI.partitions.items()
        }
    }
)
THREADS = 2


@pytest.mark.parametrize(
    "changes",
    [
        {"partition": "standard-g", "gpus_per_node": 1},
        {"partition": "standard-g", "gpus_per_node": 2, "nodes": 2},
        {"partition": "standard-g", "gpus_per_node": 1, "memory": "16G"},
        {"partition": "standard-g"},
        {"partition": "small-g", "gpus_per_node": 2, "exclusive": True},
        {"partition": "small-g", "gpus_per_node": 2},
    ],
    ids=lambda changes: "-".join(map(str, changes.values())),
)
def test_the_price_is_that_of_alloctres(cluster: Cluster, changes: dict[str, object]) -> None:
    launch = compose(changed(JOB, {"nodes": 1, **changes}, "t"), SITE)
    asked = [
        line.removeprefix("#SBATCH ")
        for line in launch.script.splitlines()
        if line.startswith(("#SBATCH --partition", "#SBATCH --nodes", "#SBATCH --ntasks",
                            "#SBATCH --cpus", "#SBATCH --gpus", "#SBATCH --mem",
                            "#SBATCH --hint", "#SBATCH --exclusive"))
    ]  # fmt: skip
    sent = cluster.login(
        f"sbatch --parsable -A {cluster.account} -t 1 -o /dev/null {' '.join(asked)} --wrap true"
    )
    assert sent.returncode == 0, sent.stderr
    job, allocated = sent.stdout.strip(), dict[str, str]()

    def has_ended() -> bool:
        shown = cluster.admin("sacct", "-XPnj", job, "-o", "State,AllocTRES").stdout.strip()
        state, _, text = shown.partition("|")
        parts = (part.partition("=") for part in text.split(",") if part)
        allocated.update({name: value for name, _, value in parts})
        return state == "COMPLETED" and "gres/gpu" in allocated

    wait_until(has_ended, 45)
    memory = allocated["mem"]
    gib = float(memory[:-1]) / {"M": 1024, "G": 1}[memory[-1]]
    cores = int(allocated["cpu"]) / THREADS
    billed = cores + gib * 0.125 + int(allocated["gres/gpu"]) * 1000
    assert launch.price.per_hour == pytest.approx(billed, rel=1e-4)
