"""Asking a cluster what it is like: one request over one connection."""

from lumitui.remote.site.answer_fields import last_words
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.node import NodeShape
from lumitui.remote.site.profile import Hosts, Site
from lumitui.remote.survey.profile import survey_request
from lumitui.remote.survey.profile.cluster_records import Cluster, read
from lumitui.remote.survey.profile.proposal import Host
from lumitui.remote.transport.records import new_marker, parse_records
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

MOST_PART = 4 << 20
"""Most bytes of one record that are read: thousands of partitions and kinds of nodes."""


def unprofiled(name: str, host: Host) -> Site:
    """Return a stand-in for the profile that is to be written: it leads to the host, no more."""
    node = NodeShape(cores=1, memory_gib=1, gpus=1, gpu="unknown", gpu_memory_gib=1)
    hosts = Hosts(login=host.login, user=host.user, port=host.port, ssh_config=host.ssh_config)
    return Site(name=name, title=name, hosts=hosts, work_root="/tmp", node=node, partitions={},
                cores_per_gpu=1)  # fmt: skip


@purpose("survey")
def ask(transport: Transport) -> Cluster:
    """Return what Slurm says of the cluster at the other end.

    Raises:
        LinkError: it cannot be reached, or the answer cannot be used.
        LumiError: there is no Slurm, or the host answers nothing that was asked.
    """
    marker = new_marker()
    result = transport.run(survey_request.script(marker), timeout=300.0)
    records = parse_records(result.out, marker)
    parts = {
        " ".join(record.words): record.content[:MOST_PART].decode("utf-8", "replace")
        for record in records
    }
    if "login" not in parts:
        said = last_words(result.err, result.out, default=f"exit status {result.code}")
        raise LumiError(
            f"The host answered nothing that was asked: {said}.", "Log in by hand and look."
        )
    found = read(parts)
    if not found.version and not found.partitions:
        said = last_words(parts.get("version", ""), default="no answer")
        raise LumiError(
            f"There is no Slurm on {found.host or 'the host'}: sbatch says {said!r}.",
            "Name a login node of the cluster, where sbatch works without `module load`.",
        )
    return found
