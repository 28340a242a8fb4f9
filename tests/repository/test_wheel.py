"""What users install: built, installed in an empty environment, run beside hostile folders."""

import compileall
import os
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.support.places import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build sdist and wheel from what git tracks and what is new, with no network for the build."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")[:-1]  # fmt: skip
    for name in listed:
        if not (ROOT / name).is_symlink() and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    for name in ("app", "remote", "templates", "trainers", "docs"):
        (source / "src" / "lumitui" / name).symlink_to(f"../../{name}")
    argv = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist")]
    result = subprocess.run(argv, cwd=source, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return next((folder / "dist").glob("*.whl"))


def test_the_wheel_holds_the_package_and_at_the_top_only_the_plugin_of_hydra(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    manual = "lumitui-0.1.0.data/data/share/man/man1/lumitui.1"
    tops = {name.split("/")[0] for name in names if "dist-info" not in name and name != manual}
    assert tops == {"lumitui", "hydra_plugins"} and manual in names
    plugins = [name for name in names if name.startswith("hydra_plugins")]
    assert plugins == ["hydra_plugins/lumitui_launcher.py"], "other distributions share the folder"
    for folder in ("app", "remote", "templates", "trainers"):
        for path in (ROOT / folder).rglob("*"):
            cached = {"__pycache__", ".mypy_cache", ".ruff_cache"} & set(path.parts)
            if path.is_file() and not cached:
                assert f"lumitui/{path.relative_to(ROOT).as_posix()}" in names
    for page in (ROOT / "docs").glob("*.md"):
        assert f"lumitui/docs/{page.name}" in names


def test_its_metadata_names_the_licenses_of_the_code_and_of_the_data(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    folder = next(name for name in archive.namelist() if name.endswith("dist-info/METADATA"))
    metadata = Parser().parsestr(archive.read(folder).decode())
    assert metadata["License-Expression"] == "MIT AND CC-BY-SA-3.0"
    named = metadata.get_all("License-File")
    assert named == ["LICENSE", "trainers/data/sample/LICENSE.md"]
    texts = [
        archive.read(folder.replace("METADATA", f"licenses/{name}")).decode() for name in named
    ]
    assert texts[0].startswith("MIT License")
    assert "Attribution-ShareAlike 3.0" in texts[1] and "Yann LeCun" in texts[1]


def test_it_runs_from_a_folder_with_its_own_app_and_remote(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = next(environment.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # As pip does: `__pycache__` stands beside the examples' programs, too.
    assert compileall.compile_dir(packages / "lumitui", quiet=1)
    # Its dependencies come from this environment; lumitui itself is hidden by the one above.
    here = next(path for path in map(Path, sys.path) if (path / "click").is_dir())
    (packages / "dependencies.pth").write_text(f"{here}\n")
    hostile = tmp_path / "project"
    for name in ("app", "remote", "templates", "trainers"):
        (hostile / name).mkdir(parents=True)
        (hostile / name / "__init__.py").write_text("raise SystemExit('the wrong package')\n")
    env = {**os.environ, "PYTHONPATH": ".", "LUMITUI_DATA_DIR": str(tmp_path / "data")}
    code = "import lumitui.app.cli.main as cli; print(cli.__file__); cli.main()"
    made = ["new", "--site", "lumi", "--example", "horovod", "--output", str(tmp_path / "job.yaml")]
    read = ["docs", "first_job"]
    for words in (["--version"], ["bind", "lumi"], ["site", "show", "--json"], read, made):
        result = subprocess.run(
            [environment / "bin" / "python", "-c", code, *words],
            cwd=hostile, env=env, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith(str(packages))
