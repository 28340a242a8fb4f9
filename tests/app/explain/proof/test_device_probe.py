"""What probe.sh says of a rank's devices, under drivers of AMD and NVIDIA, and without one."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lumitui.app.launch.launcher_templates import TEMPLATES

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may put a driver's files in their place"
)
SHELLS = [words for words in ("sh", "bash", "busybox sh") if shutil.which(words.split()[0])]
BUSES = ("c1", "c6", "c9", "ce", "d1", "d6", "d9", "de")
Told = tuple[object, object]


def kfd(folder: Path, buses: tuple[str, ...] = BUSES, unlisted: tuple[int, ...] = ()) -> Path:
    """Make the topology of a node with four NUMA domains; GPUs `unlisted` are another job's."""
    nodes = folder / "kfd" / "kfd" / "topology" / "nodes"
    for number in range(4 + len(buses)):
        at = nodes / str(number)
        at.mkdir(parents=True)
        gpu = number - 4
        place = int(buses[gpu], 16) << 8 if gpu >= 0 else 0
        at.joinpath("properties").write_text(
            f"simd_count {440 if gpu >= 0 else 0}\nlocation_id {place}\ndomain 0\n"
            f"drm_render_minor {128 + gpu}\nunique_id {0x5CA1AB1E0000 + gpu}\n"
        )
        if gpu not in unlisted:
            at.joinpath("gpu_id").write_text(f"{51000 + gpu if gpu >= 0 else 0}\n")
    return folder


def nvidia(folder: Path) -> Path:
    """Make what the NVIDIA driver shows of four GPUs."""
    for minor, bus in enumerate(("1b", "2c", "9d", "ad")):
        at = folder / "nvidia" / "gpus" / f"0000:{bus}:00.0"
        at.mkdir(parents=True)
        at.joinpath("information").write_text(
            f"Model: \t\t NVIDIA H100\nIRQ:   \t\t 18\nGPU UUID: \t GPU-{minor}a2b-3c4d\n"
            f"Bus Location: \t 0000:{bus}:00.0\nDevice Minor: \t {minor}\n"
        )
    return folder


def probe(shell: str, driver: Path, tmp_path: Path, before: str = "", **environ: str) -> Told:
    """Run the probe where `driver` is what the kernel shows; return its devices and its own."""
    place = "/proc/driver" if (driver / "nvidia").exists() else "/sys/class"
    reports = tmp_path / "reports"
    reports.mkdir(exist_ok=True)
    # The script is outside of what the namespace covers, as the run's folder is.
    script = f'mount --bind "$1" {place}; {before}\nexec {shell} "$2"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", script, "probe", driver, TEMPLATES / "job/probe.sh"],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PROOF_DIR": str(reports)}
        | {"RANK": "3", "LOCAL_RANK": "3"}
        | environ,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    [path] = reports.iterdir()
    report = json.loads(path.read_text())
    path.unlink()
    return report["devices"], report["device"]


def at(*buses: str) -> str:
    return ",".join(f"0000:{bus}:00.0" for bus in buses)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_rank_sees_what_rocr_would_show_it(shell: str, tmp_path: Path) -> None:
    driver = kfd(tmp_path / "class")

    def told(**environ: str) -> Told:
        return probe(shell, driver, tmp_path, **environ)

    assert told() == (at(*BUSES), at("ce"))
    assert told(ROCR_VISIBLE_DEVICES="0,1,2,3") == (at(*BUSES[:4]), at("ce"))
    # One GPU is this rank's, whatever its local rank is.
    assert told(ROCR_VISIBLE_DEVICES="4") == (at("d1"), at("d1"))
    assert told(ROCR_VISIBLE_DEVICES="4,5,6,7", HIP_VISIBLE_DEVICES="3,0") == (at("de", "d1"), "")
    assert told(ROCR_VISIBLE_DEVICES="GPU-00005ca1ab1e0002") == (at("c9"), at("c9"))
    assert told(ROCR_VISIBLE_DEVICES="") == ("none", "")
    # What is no GPU ends the list.
    assert told(ROCR_VISIBLE_DEVICES="1,9,2") == (at("c6"), at("c6"))


def test_a_gpu_of_another_job_is_not_this_ranks(tmp_path: Path) -> None:
    # The kernel shows no gpu_id of those.
    driver = kfd(tmp_path / "class", unlisted=(0, 1, 2, 3))
    assert probe("sh", driver, tmp_path, LOCAL_RANK="0") == (at(*BUSES[4:]), at("d1"))
    driver = kfd(tmp_path / "none", unlisted=tuple(range(8)))
    assert probe("sh", driver, tmp_path) == ("none", "")


def test_a_rank_sees_what_cuda_would_show_it(tmp_path: Path) -> None:
    driver = nvidia(tmp_path / "driver")

    def told(before: str = "", **environ: str) -> Told:
        return probe("sh", driver, tmp_path, before, **environ)

    assert told() == (at("1b", "2c", "9d", "ad"), at("ad"))
    assert told(CUDA_VISIBLE_DEVICES="2,0", LOCAL_RANK="1") == (at("9d", "1b"), at("1b"))
    assert told(CUDA_VISIBLE_DEVICES="GPU-1a2b") == (at("2c"), at("2c"))
    assert told(CUDA_VISIBLE_DEVICES="MIG-1a2b") == ("", "")
    assert told(CUDA_VISIBLE_DEVICES="-1") == ("none", "")
    # The kernel refuses to open a device that the job was not given; here it has no driver.
    refusing = (
        "mount -t tmpfs none /dev; mknod /dev/null c 1 3; mknod /dev/nvidia0 c 195 200;"
        " mknod /dev/nvidia2 c 195 200"
    )
    assert told(refusing, LOCAL_RANK="1") == (at("2c", "ad"), at("ad"))


def test_without_a_driver_nothing_is_said(tmp_path: Path) -> None:
    empty = tmp_path / "class"
    empty.mkdir()
    assert probe("sh", empty, tmp_path, ROCR_VISIBLE_DEVICES="0,1,2,3") == ("", "")


def test_damaged_files_of_a_driver_are_no_gpu(tmp_path: Path) -> None:
    driver = kfd(tmp_path / "class")
    nodes = driver / "kfd" / "kfd" / "topology" / "nodes"
    (nodes / "4" / "properties").write_text("location_id x; touch /tmp/no\nlocation_id\n\0\n")
    (nodes / "5" / "properties").unlink()
    devices, own = probe("sh", driver, tmp_path)
    assert devices == "0000:00:00.0," + at(*BUSES[2:]) and own == at("d1")
