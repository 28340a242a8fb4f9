"""The options of sbatch and srun, of Slurm 20.11 to 26.05 (their manual pages)."""

from lumitui.app.knowledge.bash.options.getopt import OptionSyntax, Takes

_BOTH = """account acctg-freq begin bb bbf burst-buffer chdir cluster-constraint clusters comment
constraint container container-id core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task
deadline delay-boot dependency distribution error exclude export extra extra-node-info gid gpu-bind
 gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input job-name
licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network
nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket
open-mode output partition power prefer priority profile qos reservation resources segment signal
sockets-per-node switches thread-spec threads-per-core time time-min tmp tres-bind tres-per-task
uid wait-all-nodes wckey container-image container-mounts container-workdir container-name
container-save container-env environment uenv view image module volume"""
_BOTH_FLAGS = """contiguous help hold no-shell overcommit oversubscribe quiet reboot requeue
consolidate-segments spread-segments
no-requeue spread-job usage use-min-nodes verbose version container-mount-home
no-container-mount-home container-writable container-readonly container-remap-root
no-container-remap-root container-entrypoint no-container-entrypoint"""
_MAYBE = (
    "exclusive get-user-env nice no-kill propagate x11 wait-for-switch resv-ports oom-kill-step"
)
_SHORT = {
    "A": "account", "b": "begin", "B": "extra-node-info", "c": "cpus-per-task", "C": "constraint",
    "d": "dependency", "D": "chdir", "e": "error", "F": "nodefile", "G": "gpus", "h": "help",
    "H": "hold", "i": "input", "J": "job-name", "k": "no-kill", "L": "licenses",
    "m": "distribution", "M": "clusters", "n": "ntasks", "N": "nodes", "o": "output",
    "O": "overcommit", "p": "partition", "q": "qos", "Q": "quiet", "s": "oversubscribe",
    "S": "core-spec", "t": "time", "v": "verbose", "V": "version", "w": "nodelist",
    "x": "exclude",
}  # fmt: skip
_SAME = {
    "tasks-per-node": "ntasks-per-node",
    "share": "oversubscribe",
    "workdir": "chdir",
    "cpu_bind": "cpu-bind",
    "mem_bind": "mem-bind",
}


def _table(values: str, flags: str, maybe: str) -> dict[str, Takes]:
    return {
        **dict.fromkeys(values.split(), "value"),
        **dict.fromkeys(flags.split(), "nothing"),
        **dict.fromkeys(maybe.split(), "maybe"),
    }


SBATCH = OptionSyntax(
    _table(
        f"{_BOTH} array batch export-file kill-on-invalid-dep wrap",
        f"{_BOTH_FLAGS} ignore-pbs parsable test-only wait stepmgr",
        _MAYBE,
    ),
    {**_SHORT, "a": "array", "u": "usage", "W": "wait"},
    _SAME,
    underscores=False,
)
SRUN = OptionSyntax(
    _table(
        f"{_BOTH} accel-bind bcast-exclude cpu-bind epilog het-group jobid launch-cmd "
        "launcher-opts ignore-signals mem-update "
        "mpi msg-timeout pack-group prolog relative slurmd-debug task-epilog task-prolog threads "
        "treewidth wait",
        f"{_BOTH_FLAGS} disable-status exact interactive label multi-prog no-allocate overlap "
        "preserve-env quit-on-interrupt unbuffered whole async parsable wait-for-children",
        f"{_MAYBE} bcast compress external-launcher immediate kill-on-bad-exit pty "
        "send-libs",
    ),
    {
        **_SHORT, "E": "preserve-env", "I": "immediate", "K": "kill-on-bad-exit", "l": "label",
        "r": "relative", "T": "threads", "u": "unbuffered", "W": "wait", "X": "disable-status",
        "Z": "no-allocate",
    },
    _SAME,
    underscores=False,
)  # fmt: skip
