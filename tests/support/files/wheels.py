"""Wheels that a test makes, so that nothing is downloaded."""

import zipfile
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, *, tag: str = "py3-none-any") -> Path:
    """Write a wheel of one module with a `VERSION` and a program of its name; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / f"{name}-{version}-{tag}.whl", f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", f"VERSION = {version!r}\ndef main(): print(VERSION)\n")
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        wheel.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name}={name}:main\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path
