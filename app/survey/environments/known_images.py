"""Stores the known facts of a site's images on the laptop; lumitui starts each image once."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lumitui.app.job.settings import write_whole
from lumitui.remote.site.answer_fields import json_of
from lumitui.remote.site.errors import LumiError
from lumitui.remote.transfer.environments.image_listing import Image, ImageContents

_FORM = 1
_MOST = 64 << 20


@dataclass(frozen=True)
class SiteImages:
    """The images of a site at a given time."""

    at: float
    """Epoch seconds, by the laptop's clock."""
    images: tuple[Image, ...]


class KnownImages:
    """The listings of all sites, one file per site."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, site: str) -> SiteImages | None:
        """Return the last listing; None if it is missing or unusable."""
        try:
            data = json_of(self._path(site).read_bytes(), most=_MOST)
        except OSError:
            return None
        try:
            return _listing(data)
        except (KeyError, TypeError, ValueError):
            return None  # another version wrote it: query again

    def put(self, site: str, listing: SiteImages) -> None:
        """Keep a listing; LumiError if the file cannot be written."""
        data = {"form": _FORM, "at": listing.at, "images": [asdict(one) for one in listing.images]}
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._path(site), json.dumps(data))
        except OSError as error:
            raise LumiError(
                f"Cannot write {self._path(site)}: {error.strerror}.", "Check the disk."
            ) from error

    def _path(self, site: str) -> Path:
        return self._folder / f"{site}.json"


def with_known(images: Iterable[Image], earlier: SiteImages | None) -> tuple[Image, ...]:
    """Return `images`, with the `earlier` contents for those that were not inspected now.

    Links to the same file have the same contents.
    """
    answers = {one.key: one.contents for one in earlier.images} if earlier else {}
    answers = {key: held for key, held in answers.items() if held and not held.why_not}
    listed = tuple(images)
    answers |= {one.key: one.contents for one in listed if one.contents}
    return tuple(replace(one, contents=answers.get(one.key)) for one in listed)


def answered(listing: SiteImages | None) -> list[str]:
    """Return the keys of the images that need not be inspected again."""
    images = listing.images if listing else ()
    return [one.key for one in images if one.contents and not one.contents.why_not]


def _listing(data: object) -> SiteImages:
    if not isinstance(data, dict) or data["form"] != _FORM:
        raise ValueError("another form")
    images = [
        Image(**{**one, "contents": ImageContents(**kept) if (kept := one["contents"]) else None})
        for one in data["images"]
    ]
    return SiteImages(float(data["at"]), tuple(images))
