"""The pages of the documentation, as they travel with the program."""

from difflib import get_close_matches
from importlib.resources import files

from lumitui.remote.site.errors import InputError

_FOLDER = files("lumitui") / "docs"


def page_names() -> list[str]:
    """Return the names of the pages."""
    found = (item.name for item in _FOLDER.iterdir())
    return sorted(name.removesuffix(".md") for name in found if name.endswith(".md"))


def page_title(name: str) -> str:
    """Return the title of a page."""
    return page_text(name).partition("\n")[0].lstrip("# ")


def page_text(name: str) -> str:
    """Return a page; `name` may be the path under which another text names it.

    Raises:
        InputError: there is no such page.
    """
    page = name.removeprefix("docs/").removesuffix(".md")
    if page in page_names():
        return (_FOLDER / f"{page}.md").read_text(encoding="utf-8")
    near = get_close_matches(page, page_names(), 1, 0.5)
    meant = f"Did you mean {near[0]}? " if near else ""
    raise InputError(f"There is no page {name!r}.", f"{meant}`lumitui docs` lists them.")
