"""What depends on an image is keyed by the image: variables that it gets, rules that name it."""

import pytest

from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from tests.support.jobs.sites.lumi_job import LUMI, job

FOLDER = "/appl/local/laifs/containers"
R64, R70, LAST_R70, R72 = (
    f"{FOLDER}/lumi-multitorch-{name}/lumi-multitorch-full-{name}.sif"
    for name in (
        "u24r64f21m43t29-20260319_153422",
        "u24r70f21m50t210-20260415_130625",
        "u24r70f21m50t210-20260807_115122",
        "u24r72f21m50t211-20260929_104918",
    )
)
LATEST = f"{FOLDER}/lumi-multitorch-latest.sif"
LEGACY = LUMI.containers["legacy"].image
SLOW = R64.replace("20260319_153422", "20260225_144743")


def chosen(image: str) -> dict[str, object]:
    generation = "legacy" if image == LEGACY else "laif"
    return {"image": image, "generation": generation} if image else {"none": True}


def said(image: str, nodes: int, **env: str) -> dict[str, str]:
    spec = job(nodes=nodes, env=env, container=chosen(image))
    return {item.rule: item.severity for item in findings(compose(spec, LUMI), LUMI)}


@pytest.mark.parametrize(
    ("image", "monitored", "interface", "level"),
    [
        (R64, True, False, False),
        (R70, True, False, False),
        (LAST_R70, True, False, False),
        (LATEST, True, False, False),
        (R72, False, False, False),
        (LEGACY, False, True, True),
        ("", False, True, False),
    ],
)
def test_an_image_gets_the_variables_that_it_needs(
    image: str, monitored: bool, interface: bool, level: bool
) -> None:
    script = compose(job(nodes=4, container=chosen(image)), LUMI).script
    assert ('export FI_MR_CACHE_MONITOR="userfaultfd"' in script) is monitored
    assert ("NCCL_SOCKET_IFNAME" in script) is interface
    assert ('export NCCL_NET="AWS Libfabric"' in script) is ("/laifs/" in image)
    assert ("NCCL_NET_GDR_LEVEL" in script) is level
    assert "kdreg2" not in script and "--shutdown-timeout" not in script


@pytest.mark.parametrize(
    ("image", "nodes", "env", "rule", "severity"),
    [
        (R70, 1, {"FI_MR_CACHE_MONITOR": "kdreg2"}, "lumi-kdreg2", "error"),
        (LAST_R70, 4, {"FI_MR_CACHE_MONITOR": "kdreg2"}, "lumi-kdreg2", "error"),
        (R72, 4, {"FI_MR_CACHE_MONITOR": "kdreg2"}, "lumi-kdreg2", None),
        (R70, 4, {"FI_MR_CACHE_MONITOR": "userfaultfd"}, "lumi-kdreg2", None),
        (R70, 2, {"FI_MR_CACHE_MONITOR": "memhooks"}, "lumi-memhooks", "warning"),
        (R70, 1, {"FI_MR_CACHE_MONITOR": "memhooks"}, "lumi-memhooks", None),
        (R72, 2, {"FI_MR_CACHE_MONITOR": "memhooks"}, "lumi-memhooks", None),
        (R70, 2, {"NCCL_NET_GDR_LEVEL": "PHB"}, "container-variable", "error"),
        (R72, 2, {"NCCL_NET_GDR_LEVEL": "PHB"}, "container-variable", "error"),
        (LATEST, 2, {"NCCL_NET_GDR_LEVEL": "PHB"}, "container-variable", "error"),
        (R64, 2, {"NCCL_NET_GDR_LEVEL": "PHB"}, "container-variable", None),
        (R64, 2, {"NCCL_NET_GDR_LEVEL": "PHB"}, "lumi-gdr-default", "note"),
        (R70, 2, {"NCCL_NET_GDR_LEVEL": "PHB"}, "lumi-gdr-default", None),
        (LEGACY, 2, {"NCCL_NET_GDR_LEVEL": "PHB"}, "container-variable", None),
        (SLOW, 2, {}, "lumi-slow-image", "warning"),
        (SLOW, 1, {}, "lumi-slow-image", None),
        (R64, 2, {}, "lumi-slow-image", None),
        (R70, 2, {"NCCL_SOCKET_IFNAME": "eth0"}, "foreign-interface", "error"),
        (R70, 2, {"NCCL_SOCKET_IFNAME": "hsn"}, "foreign-interface", None),
        ("", 2, {"FI_MR_CACHE_MONITOR": "kdreg2"}, "lumi-kdreg2", None),
    ],
)
def test_a_rule_about_an_image_speaks_of_that_image_only(
    image: str, nodes: int, env: dict[str, str], rule: str, severity: str | None
) -> None:
    assert said(image, nodes, **env).get(rule) == severity
