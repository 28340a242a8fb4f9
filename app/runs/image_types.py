"""What a site has besides nodes: images, packages, news."""

from lumitui.app.follow.sites.overview_words import parts_of
from lumitui.app.launch.rules.venv_rules import reaches_index
from lumitui.app.survey.environments.image_contents import unknown_because, version_of, with_package

__all__ = [
    "parts_of",
    "reaches_index",
    "unknown_because",
    "version_of",
    "with_package",
]
