"""The one request that asks Slurm what a cluster is like, for a profile that nobody has written."""

from lumitui.remote.transport.records import record_functions

MOST_GROUPS = 4_000
"""Most lines of sinfo that are read: a site has some hundred kinds of nodes by partition."""
SAMPLES = 8
"""Most nodes that are asked for what sinfo does not show: the reserved cores of each kind."""
CONTAINERS = ("singularity", "apptainer", "enroot", "podman-hpc", "podman", "sarus", "shifter")
"""Commands that run containers, as sites have them."""
_VARIABLES = "SCRATCH PSCRATCH WORK WORKDIR WORKSPACE PROJECT PROJECTDIR FLASH STORE"
"""Variables in which sites tell where large files belong."""
_FOLDERS = "/scratch /work /gpfs/scratch /lustre/scratch /p/scratch /flash /project /projects"
"""Folders below which sites keep a folder for each project or person."""


def script(marker: str) -> str:
    """Return the request: POSIX sh, one record for each question, each within 20 seconds."""
    return "\n".join(
        [
            "LC_ALL=C; export LC_ALL; unset SLURM_CLUSTERS",
            "t=; if command -v timeout >/dev/null 2>&1; then t='timeout 20'; fi",
            record_functions(marker),
            'begin login; id -un; uname -n; uname -m; printf "%s\\n" "$HOME"; id -Gn; finish',
            "begin version; $t sbatch --version 2>&1; finish",
            "begin config; $t scontrol show config 2>&1 | head -n 1000; finish",
            "begin partitions; $t scontrol show partition -o 2>&1; finish",
            "groups=$($t sinfo -h -e --local -o '%R|%D|%c|%X|%Y|%Z|%m|%G|%N' 2>&1 |"
            f" head -n {MOST_GROUPS})",
            'begin groups; printf "%s\\n" "$groups"; finish',
            # Of each kind of node the first one.
            "begin nodes",
            "printf '%s\\n' \"$groups\" | awk -F'|' '$8 ~ /gpu/ && !seen[$8,$3,$7]++ {print $9}' |"
            f" head -n {SAMPLES} | while IFS= read -r list; do",
            '  one=$($t scontrol show hostnames "$list" 2>/dev/null | head -n 1)',
            '  [ -z "$one" ] || $t scontrol show node -o "$one" 2>&1; done; finish',
            "begin associations",
            '$t sacctmgr -n -P show assoc user="$(id -un)"'
            " format=cluster,account,partition,qos,defaultqos 2>/dev/null; finish",
            'begin default; $t sacctmgr -n -P show user "$(id -un)" format=defaultaccount'
            " 2>/dev/null; finish",
            "begin qos; $t sacctmgr -n -P show qos"
            " format=name,maxwall,maxtres,maxjobspu,mintres 2>/dev/null; finish",
            "begin commands; for one in module " + " ".join(CONTAINERS) + "; do",
            '  [ "$one" = module ] || ! command -v "$one" >/dev/null 2>&1 || echo "$one"; done',
            "bash -lc 'type module' >/dev/null 2>&1 && echo module; finish",
            *_places(),
            "exit 0",
        ]
    )


def _places() -> list[str]:
    """Return the lines that look for folders where the person may keep large files."""
    return [
        "begin places",
        'show() { [ -d "$2" ] && [ -w "$2" ] && printf "%s|%s|%s\\n" "$1" "$2"'
        ' "$(df -Pk "$2" 2>/dev/null | awk \'END {print $4}\')"; }',
        # What a login shell sets is not in the environment of a command.
        f"for name in {_VARIABLES}; do",
        '  value=$(bash -lc \'printf %s "${!1-}"\' - "$name" 2>/dev/null | tail -n 1)',
        '  case $value in /*) show "\\$$name" "$value" ;; esac; done',
        'mine=$(id -un); accounts=$($t sacctmgr -n -P show assoc user="$mine" format=account'
        " 2>/dev/null | sort -u | head -n 50)",
        f"for folder in {_FOLDERS}; do for name in $accounts $(id -Gn) $mine; do",
        '  case $name in */* | .*) ;; *) show found "$folder/$name" ;; esac; done; done',
        'show home "$HOME"; finish',
    ]
