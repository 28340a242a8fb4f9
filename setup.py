"""What the metadata takes from one address: where things are, and the links of the description."""

import re
from pathlib import Path

from setuptools import setup

HOME = "https://lumitui.example"
"""Placeholder: the repository's address, once it has one."""


def description(text: str) -> str:
    """Return the README with absolute links: an index shows it without the files beside it."""
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\1{HOME}/raw/main/", text)
    return re.sub(r"(?<!!)(\[[^\]]*\]\()(?!https?:)", rf"\1{HOME}/blob/main/", text)


setup(
    long_description=description(Path("README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    url=HOME,
    project_urls={
        "Documentation": f"{HOME}/tree/main/docs",
        "Changelog": f"{HOME}/blob/main/CHANGELOG.md",
        "Issues": f"{HOME}/issues",
    },
)
