"""compiled.sh: what compilers made goes from job to job, with a stand-in for srun."""

import os
import subprocess
from pathlib import Path

import pytest

from lumitui.app.launch.compose import compose
from tests.support.jobs.job_functions import sourced
from tests.support.jobs.sites.lumi_job import LUMI
from tests.support.jobs.sites.lumi_job import job as job_of

HEAD = f"""{sourced("compiled")}srun() {{ while [[ $1 == --* ]]; do shift; done; "$@"; }}
timeout() {{ while [[ $1 == -* ]]; do shift 2; done; shift; "$@"; }}
SLURM_JOB_NUM_NODES=1
"""
GPU = "'A GPU||python3'"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "runs" / "r").mkdir(parents=True)
    (tmp_path / "image.sif").write_text("an image")
    return tmp_path


def job(
    root: Path, *commands: str, around: str = GPU, limit: int = 600, **environ: str
) -> tuple[str, Path]:
    """Run a job that ends well, whose program is `commands`; return what it said, and NODE_TMP."""
    number = len(list(root.glob("node-*")))
    node = root / f"node-{number}"
    node.mkdir()
    text = [
        HEAD,
        f"RUN_DIR={root}/runs/r NODE_TMP={node} SIF={root}/image.sif",
        f"lumitui_compiled {limit} {around} inductor triton",
        'cd "$NODE_TMP"; ls -A inductor triton 2>/dev/null || true; sleep 0.01',
        *commands,
        "lumitui_keep_compiled || true; echo end",
    ]
    done = subprocess.run(
        ["bash", "-c", "\n".join(text)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environ,
        timeout=60,
    )
    assert done.stdout.endswith("end\n")
    return done.stdout + done.stderr, node


def kept(root: Path) -> list[Path]:
    return sorted(root.glob("compiled/*.tar.gz"))


COMPILE = "mkdir -p inductor/ab; echo code >inductor/ab/kernel.so; : >inductor/x.lock"


def test_the_next_job_has_what_one_compiled_and_others_have_not(root: Path) -> None:
    nothing, _ = job(root)
    assert nothing == "end\n" and not (root / "compiled").exists()
    job(root, COMPILE)
    (archive,) = kept(root)
    assert archive.stat().st_mode & 0o077 == 0
    first = archive.stat().st_ino
    said, node = job(root)
    assert said == "inductor:\nab\nend\n"
    assert (node / "inductor" / "ab" / "kernel.so").read_text() == "code\n"
    assert not list(node.glob(".compiled-*")) and kept(root) == [archive]
    assert archive.stat().st_ino == first  # nothing new
    # More of it: the newest wins.
    job(root, "echo more >inductor/more.so")
    assert "more.so" in job(root)[0] and len(kept(root)) == 1
    # Another GPU, environment or image has nothing of it.
    assert job(root, around="'another||python3'")[0] == "end\n"
    assert job(root, LOADEDMODULES="pytorch/9")[0] == "end\n"
    (root / "image.sif").write_text("made anew under its name")
    assert job(root)[0] == "end\n"


def test_of_environments_pytorchs_version_counts(root: Path) -> None:
    version = root / "venv" / "lib" / "python3.12" / "site-packages" / "torch" / "version.py"
    version.parent.mkdir(parents=True)
    version.write_text("2.9")
    around = f"'A GPU||{root}/venv/bin/python'"
    job(root, COMPILE, around=around)
    assert "ab" in job(root, around=around)[0]
    version.write_text("2.13.0")
    assert job(root, around=around)[0] == "end\n"


@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_an_archive_that_is_damaged_costs_a_sentence(root: Path, damage: str) -> None:
    job(root, COMPILE, "head -c 200000 /dev/urandom >inductor/large.so")
    (archive,) = kept(root)
    archive.write_bytes(archive.read_bytes()[:100_000] if damage == "cut" else b"no archive")
    said, node = job(root, COMPILE)
    assert "could not be unpacked on every node; it will be compiled again" in said
    assert not (node / "inductor" / "large.so").exists() and not list(node.glob(".compiled-*"))
    assert "ab" in job(root)[0]


@pytest.mark.parametrize(
    ("commands", "limit", "said"),
    [
        # It would take a minute that the job does not have.
        ([COMPILE], 60, ""),
        (["mkdir inductor; truncate -s 1100M inductor/a", "du() { echo 1100 total; }"], 600,
         "the compilers wrote 1100 MiB, which is not kept"),
        ([COMPILE, "tar() { return 2; }"], 600, "could not be kept for the next job"),
        ([COMPILE, "mkdir() { return 1; }"], 600, "could not be kept for the next job"),
        ([COMPILE, "mv() { return 1; }"], 600, "could not be kept for the next job"),
        ([COMPILE, 'rm -rf "$NODE_TMP"'], 600, ""),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_ends_no_job(
    root: Path, commands: list[str], limit: int, said: str
) -> None:
    found, _ = job(root, *commands, limit=limit)
    assert said in found and not kept(root)
    assert not list(root.glob("compiled/.new-*"))


def test_archives_of_the_last_images_are_kept(root: Path) -> None:
    for number in range(6):
        job(root, COMPILE, around=f"'GPU {number}||python3'")
    assert len(kept(root)) == 4
    assert [job(root, around=f"'GPU {n}||python3'")[0] != "end\n" for n in (1, 2, 5)] == [
        False, True, True
    ]  # fmt: skip


def line_of(**changes: object) -> str:
    """The script's line about what compilers made; empty without one."""
    lines = compose(job_of(**changes), LUMI).script.splitlines()
    return next((line for line in lines if line.startswith("lumitui_compiled ")), "")


def test_one_key_switches_it_off() -> None:
    assert line_of().startswith("lumitui_compiled 3600 ") and not line_of(keep_compiled=False)
    own = dict.fromkeys(("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"), "/tmp/own")
    assert "miopen-cache" in line_of(env=own) and "inductor" not in line_of(env=own)


def test_what_one_environment_compiled_is_not_anothers() -> None:
    venvs = [line_of(venv=[package]) for package in ("einops==0.8", "einops==0.9")]
    assert len({line_of(), *venvs, line_of(container={"venv": "/scratch/v.sqsh"})}) == 4
