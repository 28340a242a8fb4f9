"""The container images of a site and their contents, in one request."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from lumitui.remote.site.answer_fields import count, json_of, last_words, short
from lumitui.remote.site.container import Container
from lumitui.remote.site.errors import RefusedError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transfer.environments.image_names import versions_in
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

ASKING_SECONDS = 100
"""Total time limit in seconds for starting images on the login node, one after another."""
_EACH_SECONDS = 30
_MOST_IMAGES = 200
_MOST_PACKAGES = 5_000

_CONTENTS = """\
import json, platform, runpy
from importlib.metadata import distributions
packages, at = {}, None
for d in distributions():
    name = (d.metadata["Name"] or "").lower().replace("_", "-")
    packages.setdefault(name, d.version)
    if name == "torch": at = d.locate_file("torch/version.py")
built = runpy.run_path(str(at)) if at else {}
print(json.dumps({"python": platform.python_version(), "packages": packages,
                  "rocm": built.get("hip"), "cuda": built.get("cuda")}))
"""
"""Run by the image's Python. Does not import torch, which takes seconds and memory."""

# An image behind several links is started once. `timeout` ends hung images; nice keeps the login
# node responsive.
_GENERATION = """\
set +e
{modules}
for image in {globs}; do
  [ -r "$image" ] || continue
  real=$(readlink -f "$image") && facts=$(stat -Lc '%s %Y' "$image") || continue
  begin image {generation} $facts; printf '%s\\n' "$image" "$real"; finish
  case $seen in *"|$real|"*) continue;; esac
  seen="$seen$real|"
  [ {asked} = yes ] || continue
  case {known} in *"|$real $facts|"*) continue;; esac
  if [ "$(date +%s)" -ge "$end" ]; then
    begin late; printf '%s\\n' "$real"; finish; continue
  fi
  begin contents; printf '%s\\n' "$real"
  timeout -k 5 {each} nice -n 10 {call} "$image" {inside} -c {code} 2>&1 </dev/null
  printf '\\nstatus %s\\n' "$?"; finish
done
"""


@dataclass(frozen=True)
class ImageContents:
    """What an image reports about itself."""

    python: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Package versions by name, normalized as in pip."""
    rocm: str = ""
    cuda: str = ""
    why_not: str = ""
    """Why nothing is known; "" if the image answered."""


@dataclass(frozen=True)
class Image:
    """One image file of a site."""

    generation: str
    path: str
    real: str
    """The target, if the path is a link."""
    size: int
    modified: int
    named: Mapping[str, str]
    """The versions in its name."""
    contents: ImageContents | None = None
    """None: it was not queried."""

    @property
    def key(self) -> str:
        """Its identity for later lists: a different file of the same name is another image."""
        return f"{self.real} {self.size} {self.modified}"


@purpose("images")
def find_images(transport: Transport, site: Site, keys: Collection[str]) -> list[Image]:
    """Return the images of `site`; images with a `key` in `keys` are not started.

    Raises:
        RefusedError: the login node's shell refused.
    """
    marker = new_marker()
    result = transport.run(_script(site, keys, marker), timeout=ASKING_SECONDS + 60.0)
    if result.code:
        raise RefusedError(
            "lumitui could not list the images: "
            f"{last_words(result.err, default='no reason given')}.",
            "Run `lumitui site check` to see whether a login shell works on the site.",
        )
    images: dict[str, Image] = {}
    answers: dict[str, ImageContents] = {}
    for record in parse_records(result.out, marker):
        kind, *words = record.words or [""]
        path, _, rest = record.content.decode("utf-8", "replace").partition("\n")
        if kind == "image":
            image = _image(site, words, path, rest.strip())
            if image and len(images) < _MOST_IMAGES:
                images.setdefault(image.path, image)
        elif kind == "late":
            answers[path] = ImageContents(why_not="the query ran out of time")
        elif kind == "contents":
            answers[path] = _contents(rest)
    return [replace(image, contents=answers.get(image.real)) for image in images.values()]


def _image(site: Site, words: list[str], path: str, real: str) -> Image | None:
    generation, *numbers = [*words, "", "", ""][:3]
    size, modified = map(count, numbers)
    if generation not in site.containers or size is None or modified is None or not path:
        return None
    listing = site.containers[generation].listing
    named = versions_in(real, listing.names) if listing else {}
    named = named or (versions_in(path, listing.names) if listing else {})
    return Image(generation, path, real, size, modified, named)


def _contents(output: str) -> ImageContents:
    line = next((row for row in output.splitlines() if row.startswith('{"python"')), "")
    answer = json_of(line)
    packages = answer.get("packages") if isinstance(answer, dict) else None
    if not isinstance(answer, dict) or not isinstance(packages, dict):
        if re.search(r"^status (124|137)$", output, re.MULTILINE):
            return ImageContents(why_not=f"it did not answer in {_EACH_SECONDS} s")
        words = re.sub(r"\n*status \d+\n*$", "", output)
        return ImageContents(why_not=last_words(words, default="its Python printed nothing"))
    kept = {
        short(name, 200): short(version, 100)
        for name, version in list(packages.items())[:_MOST_PACKAGES]
    }
    numbers = [short(answer.get(name), 40) for name in ("python", "rocm", "cuda")]
    return ImageContents(numbers[0], kept, numbers[1], numbers[2])


def _script(site: Site, keys: Collection[str], marker: str) -> str:
    parts = [
        _generation(name, container, keys)
        for name, container in site.containers.items()
        if container.image or container.listing
    ]
    begin = f"{record_functions(marker)}\nseen='|' end=$(($(date +%s) + {ASKING_SECONDS}))\n"
    # Modules need a login shell; each generation loads its modules in a separate shell.
    shells = [f"bash -lc {quote(begin + part)}" for part in parts]
    return "\n".join(["LC_ALL=C; export LC_ALL", *shells, "exit 0"])


def _generation(name: str, container: Container, keys: Collection[str]) -> str:
    listing = container.listing
    globs = [
        *(listing.paths if listing else ()),
        *([quote(container.image)] * bool(container.image)),
    ]
    inside = container.python
    if container.activate:
        script = f'{container.activate}; exec "$@"'
        inside = f"bash -c {quote(script)} activate {inside}"
    return fill(
        _GENERATION,
        modules="\n".join(f"{line} >/dev/null 2>&1" for line in container.modules),
        globs=" ".join(globs),
        generation=quote(name),
        asked="yes" if listing is None or listing.asked else "no",
        known=quote("|" + "|".join(keys) + "|"),
        each=_EACH_SECONDS,
        call=" ".join(map(quote, container.call)),
        inside=inside,
        code=quote(_CONTENTS),
    )
