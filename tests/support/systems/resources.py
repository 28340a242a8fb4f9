"""What the LUMI AI Guide's setup copies to where its legacy jobs look: a venv and two folders."""

import subprocess
from pathlib import Path

from tests.support.jobs.sites.golden_jobs import RESOURCES
from tests.support.servers.cluster import Cluster


def put_resources(cluster: Cluster, folder: Path) -> None:
    """Squash a virtual environment made in `folder`, whose python is the images' own."""
    (folder / "bin").mkdir()
    for name in ("python", "python3"):
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec {cluster.python} "$@"\n')
        (folder / "bin" / name).chmod(0o755)
    place = Path(RESOURCES)
    for name in ("deepspeed_adam", "deepspeed_includes"):
        (place / name).mkdir(parents=True, exist_ok=True)
    squashed = place / "visualtransformer-env.sqsh"
    argv = ["mksquashfs", str(folder), str(squashed), "-noappend", "-no-xattrs", "-quiet"]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    subprocess.run(["chmod", "-R", "a+rX", str(place)], check=True)
