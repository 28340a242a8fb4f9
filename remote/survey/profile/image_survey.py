"""Finds a cluster's container images in the usual folders, and which call has PyTorch inside."""

import re
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import lines
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.survey import slurm_records as slurm

RUNTIMES = ("singularity", "apptainer")
"""Commands that start an image file."""
_FOLDERS = (
    "/appl/containers /appl/local/containers /appl/local/*/containers /apps/containers "
    "/opt/containers /soft/containers /software/containers /sw/containers /sw/*/containers "
    "/containers /scratch/containers"
)
"""Folders in which sites keep images."""
_VARIABLES = (
    "SIF SIF_DIR SIF_PATH SIFDIR SINGULARITY_IMAGES SINGULARITY_IMAGE_DIR SINGULARITY_CONTAINERS "
    "APPTAINER_IMAGES APPTAINER_IMAGE_DIR CONTAINERS CONTAINER_DIR CONTAINERDIR IMAGES_DIR"
)
"""Variables of a login shell that name such a folder, or an image."""
_MOST = 100
"""Maximum number of images to list."""
_TRIES = 3
"""Maximum number of images to start: one takes a second or two on a parallel file system."""
_SECONDS = 60
"""Seconds after which lumitui starts no other image."""

# Two levels, no recursion: such a folder may hold a million files. Of an image and its links, the
# image; then the newest.
_LIST = r"""for folder in {folders} "$HOME"/*.sif "$HOME"/containers "$HOME"/images $(bash -lc '
  for name in {variables}; do printf "%s\n" "${!name-}"; done' 2>/dev/null | grep '^/'); do
  for image in "$folder" "$folder"/*.sif "$folder"/*.simg "$folder"/*/*.sif; do
    case $image in *[!A-Za-z0-9/._+-]*) continue ;; *.sif | *.simg) ;; *) continue ;; esac
    [ -f "$image" ] && [ -r "$image" ] || continue
    link=0; [ ! -L "$image" ] || link=1
    printf "%s|%s|%s|%s\n" $link "$(stat -Lc %Y "$image")" "$(readlink -f "$image")" "$image"
  done; done"""
_ANSWER = """\
import sys, platform
from importlib import metadata
try: torch = metadata.version("torch")
except Exception: torch = ""
print("answer|%s|%s|%s" % (sys.argv[1], platform.python_version(), torch))
"""
_INSIDE = (
    'for one in python python3; do command -v $one >/dev/null 2>&1 && exec $one -c "$1" $one; done'
)
_SH = r"""runtime=; for one in {runtimes}; do
  [ -n "$runtime" ] || ! command -v $one >/dev/null 2>&1 || runtime=$one; done
images=$($t sh -c {list} 2>/dev/null | sort -t'|' -k1,1n -k2,2nr |
  awk -F'|' '!seen[$3]++ {print $4}' | head -n {most})
printf '%s\n' "$images" | sed -n 's/^./image|&/p'
case $groups in *gpu:mi[0-9]*) other='cuda|nvidia|ngc' ;; *) other='rocm|amd' ;; esac
end=$(($(date +%s) + {seconds}))
[ -z "$runtime" ] || [ -z "$t" ] || printf '%s\n' "$images" | grep -i torch |
  grep -viE "$other" | head -n {tries} | while IFS= read -r image; do for verb in exec run; do
    [ "$(date +%s)" -lt $end ] || break 2
    said=$($t nice -n 10 $runtime $verb "$image" sh -c {inside} sh {answer} 2>/dev/null </dev/null |
      sed -n 's/^answer|//p' | head -n 1)
    [ -z "$said" ] || printf 'tried|%s|%s|%s|%s\n' $runtime $verb "$image" "$said"
    case $said in '' | *'|') ;; *) break ;; esac
  done; done"""


def images_sh(folders: str = _FOLDERS) -> str:
    """Return sh that lists the images in `folders`, the user's home and what variables name.

    It starts the likeliest on the login node: by `exec`, then by `run` if PyTorch is not there. It
    needs `$groups`, the lines of sinfo: an image for the other maker's GPUs is not started.
    """
    return fill(
        _SH,
        runtimes=" ".join(RUNTIMES),
        list=quote(fill(_LIST, folders=folders, variables=_VARIABLES)),
        most=_MOST,
        seconds=_SECONDS,
        tries=_TRIES,
        inside=quote(_INSIDE),
        answer=quote(_ANSWER),
    )


@dataclass(frozen=True)
class TriedImage:
    """An image whose Python answered on the login node."""

    path: str
    runtime: str
    verb: str
    """`exec` or `run`."""
    python: str
    """The name of its Python."""
    version: str
    torch: str
    """Its version of PyTorch; "": none."""


@dataclass(frozen=True)
class SurveyedImages:
    """The images that a survey found."""

    paths: tuple[str, ...] = ()
    tried: tuple[TriedImage, ...] = ()

    @property
    def working(self) -> tuple[TriedImage, ...]:
        """The images that have PyTorch: the first for each verb, so that none is called wrongly."""
        by_verb: dict[str, TriedImage] = {}
        for one in self.tried:
            if one.torch:
                by_verb.setdefault(one.verb, one)
        return tuple(by_verb.values())

    def patterns(self, image: TriedImage) -> tuple[str, ...]:
        """Return the folders of the images that are called like `image`, for `listing:`."""
        alike = [one.path for one in self.tried if one.torch and one.verb == image.verb]
        folders = dict.fromkeys(path.rpartition("/")[0] for path in alike)
        return tuple(f"{folder}/*.sif" for folder in folders)


def images(text: str) -> SurveyedImages:
    """Return the images that were found, without lines that are none."""
    rows = [line.split("|") for line in lines(text, most=_MOST + 20)]
    paths = [row[1] for row in rows if row[0] == "image" and len(row) == 2 and _is_path(row[1])]
    return SurveyedImages(tuple(paths), tuple(filter(None, map(_tried, rows))))


def _tried(row: list[str]) -> TriedImage | None:
    if len(row) != 7 or row[0] != "tried" or row[1] not in RUNTIMES or not _is_path(row[3]):
        return None
    _, runtime, verb, path, python, version, torch = row
    if verb not in ("exec", "run") or python not in ("python", "python3"):
        return None
    numbers = (
        number if re.fullmatch(r"[\w.+-]{1,40}", number) else "" for number in (version, torch)
    )
    return TriedImage(path, runtime, verb, python, *numbers)


def _is_path(text: str) -> bool:
    return slurm.is_name(text) and re.fullmatch(r"/[\w/.+-]+", text, re.ASCII) is not None
