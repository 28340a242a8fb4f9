"""Options of sbatch, srun, containers, launchers, and programs that start another program.

Slurm's options are those in its manual pages from 20.11 to 26.05.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lumitui.app.knowledge.bash.getopt import OptionSyntax, Takes


def _takes(values: str, flags: str = "", maybe: str = "") -> dict[str, Takes]:
    return {
        **dict.fromkeys(values.split(), "value"),
        **dict.fromkeys(flags.split(), "nothing"),
        **dict.fromkeys(maybe.split(), "maybe"),
    }


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


SBATCH = OptionSyntax(
    _takes(
        f"{_BOTH} array batch export-file kill-on-invalid-dep wrap",
        f"{_BOTH_FLAGS} ignore-pbs parsable test-only wait stepmgr",
        _MAYBE,
    ),
    {**_SHORT, "a": "array", "u": "usage", "W": "wait"},
    _SAME,
    underscores=False,
)
SRUN = OptionSyntax(
    _takes(
        f"{_BOTH} accel-bind bcast-exclude cpu-bind epilog het-group jobid launch-cmd "
        "launcher-opts ignore-signals mem-update mpi msg-timeout pack-group prolog relative "
        "slurmd-debug task-epilog task-prolog threads treewidth wait",
        f"{_BOTH_FLAGS} disable-status exact interactive label multi-prog no-allocate overlap "
        "preserve-env quit-on-interrupt unbuffered whole async parsable wait-for-children",
        f"{_MAYBE} bcast compress external-launcher immediate kill-on-bad-exit pty send-libs",
    ),
    {
        **_SHORT, "E": "preserve-env", "I": "immediate", "K": "kill-on-bad-exit", "l": "label",
        "r": "relative", "T": "threads", "u": "unbuffered", "W": "wait", "X": "disable-status",
        "Z": "no-allocate",
    },
    _SAME,
    underscores=False,
)  # fmt: skip

SINGULARITY = OptionSyntax(
    _takes(
        "add-caps app apply-cgroups bind blkio-weight cpu-shares cpus cpuset-cpus cwd dns "
        "drop-caps env env-file fakerootpid fusemount home hostname memory memory-reservation "
        "mount network network-args nvccli-ids overlay pem-path pids-limit pwd scratch security "
        "workdir config docker-password docker-username docker-host",
        "allow-setuid cleanenv compat contain containall disable-cache docker-login fakeroot ipc "
        "keep-privs net no-eval no-home no-https no-init no-privs no-umask no-pid nohttps nv "
        "nvccli oci passphrase pid rocm sharens underlay userns uts vm writable writable-tmpfs "
        "no-rocm no-nv debug quiet silent verbose nocolor no-tmp-sandbox no-compat",
    )
    | _takes("no-mount"),
    {
        "B": "bind", "c": "contain", "C": "containall", "e": "cleanenv", "f": "fakeroot",
        "H": "home", "i": "ipc", "n": "net", "o": "overlay", "p": "pid", "S": "scratch",
        "u": "userns", "w": "writable", "W": "workdir", "d": "debug", "q": "quiet",
        "s": "silent", "v": "verbose",
    },
)  # fmt: skip
"""`singularity` and `apptainer`: the global options and those of exec, run and shell."""

PODMAN = OptionSyntax(
    _takes(
        "volume env env-file workdir name entrypoint user network device mount shm-size ipc "
        "ulimit pid",
        "rm gpu mpi cuda-mpi interactive tty privileged openmpi-pmi2 openmpi-pmix net nccl",
    ),
    {"v": "volume", "V": "volume", "e": "env", "w": "workdir", "i": "interactive", "t": "tty",
     "u": "user"},
    unknown_values=False,
)  # fmt: skip
"""`podman-hpc run` and `shifter`."""

TORCHRUN = OptionSyntax(
    _takes(
        "nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts "
        "monitor-interval start-method role log-dir redirects tee local-ranks-filter node-rank "
        "master-addr master-port local-addr logs-specs numa-binding event-log-handler "
        "signals-to-handle shutdown-timeout duplicate-stdout-filters duplicate-stderr-filters "
        "local-rank",
        "standalone module no-python run-path use-env virtual-local-rank help enable-each-rank-log",
    ),
    {"r": "redirects", "t": "tee", "m": "module"},
    unknown_values=True,
)
DEEPSPEED = OptionSyntax(
    _takes(
        "hostfile include exclude num-nodes num-gpus master-addr master-port launcher "
        "launcher-args autotuning node-rank min-elastic-nodes max-elastic-nodes ssh-port "
        "bind-core-list enable-each-rank-log save-pid venv-script",
        "module no-python no-local-rank no-ssh-check force-multi elastic-training no-ssh "
        "bind-cores-to-rank help",
    ),
    {"H": "hostfile", "i": "include", "e": "exclude"},
)
ACCELERATE = OptionSyntax(
    _takes(
        "config-file num-processes num-machines machine-rank main-process-ip main-process-port "
        "mixed-precision dynamo-backend dynamo-mode num-cpu-threads-per-process gpu-ids "
        "rdzv-backend rdzv-conf max-restarts monitor-interval role tee log-dir "
        "deepspeed-config-file zero-stage offload-optimizer-device offload-param-device "
        "offload-optimizer-nvme-path offload-param-nvme-path gradient-accumulation-steps "
        "gradient-clipping zero3-init-flag zero3-save-16bit-model deepspeed-hostfile "
        "deepspeed-exclusion-filter deepspeed-inclusion-filter deepspeed-multinode-launcher "
        "deepspeed-moe-layer-cls-names fsdp-version fsdp-offload-params fsdp-reshard-after-forward "
        "fsdp-min-num-params fsdp-sharding-strategy fsdp-auto-wrap-policy "
        "fsdp-transformer-layer-cls-to-wrap fsdp-backward-prefetch fsdp-backward-prefetch-policy "
        "fsdp-state-dict-type fsdp-forward-prefetch fsdp-use-orig-params "
        "fsdp-cpu-ram-efficient-loading fsdp-sync-module-states fsdp-activation-checkpointing "
        "same-network-ip main-training-function downcast-bf16 megatron-lm-tp-degree "
        "megatron-lm-pp-degree megatron-lm-num-micro-batches rdzv-endpoint dynamo-use-fullgraph "
        "dynamo-use-dynamic fp8-backend fp8-format enable-cpu-affinity-for",
        "multi-gpu cpu tpu use-deepspeed use-fsdp use-megatron-lm same-network standalone module "
        "no-python quiet debug use-xpu mps use-mps-device ipex enable-cpu-affinity "
        "main-process-first help",
    ),
    {"m": "module", "q": "quiet"},
    prefixes=True,
)
MPIRUN = OptionSyntax(
    _takes(
        "np n c N npernode npersocket host H hostfile machinefile f map-by rank-by bind-to "
        "cpus-per-rank x wdir wd path prefix ppn perhost hosts envlist genvlist rankfile rf "
        "output-filename display mpi timeout rmk launcher bootstrap iface host-list cpus-per-proc "
        "tag-output-file app",
        "tag-output report-bindings oversubscribe nooversubscribe bynode byslot bycore bysocket v "
        "verbose display-map display-allocation allow-run-as-root bind-to-core bind-to-none l "
        "prepend-rank use-hwthread-cpus genvall envall envnone q quiet merge-stderr-to-stdout "
        "continuous pernode help V version",
    )
    | {"mca": "pair", "env": "pair", "gmca": "pair", "genv": "pair"},
    one_dash=True,
    prefixes=False,
)


@dataclass(frozen=True)
class Wrapper:
    """A program that starts the one named in its operands, like `numactl` or `timeout`."""

    table: OptionSyntax
    operands: int = 0
    """Number of its own operands before that program, like `timeout`'s duration."""
    assignments: bool = False
    """Whether `A=1` may precede that program, as with `env`."""
    adds: bool = False
    """Whether it starts that program repeatedly, with words that it reads, like `xargs`."""
    verbs: tuple[str, ...] = ()
    """Subcommands, as in `nsys profile`."""


_NO = OptionSyntax({})
WRAPPERS: Mapping[str, Wrapper] = {
    "env": Wrapper(
        OptionSyntax(
            _takes("unset chdir split-string", "ignore-environment null debug"),
            {"u": "unset", "C": "chdir", "S": "split-string", "i": "ignore-environment"},
        ),
        assignments=True,
    ),
    "time": Wrapper(
        OptionSyntax(_takes("format output", "portability verbose append"),
              {"f": "format", "o": "output", "p": "portability", "v": "verbose", "a": "append"})
    ),
    "nohup": Wrapper(_NO),
    "xargs": Wrapper(
        OptionSyntax(
            _takes("arg-file delimiter E I L max-args max-procs max-chars process-slot-var",
                   "null no-run-if-empty verbose interactive exit open-tty"),
            {"a": "arg-file", "d": "delimiter", "n": "max-args", "P": "max-procs",
             "s": "max-chars", "0": "null", "r": "no-run-if-empty", "t": "verbose",
             "p": "interactive", "x": "exit", "o": "open-tty", "E": "E", "I": "I", "L": "L"},
        ),
        adds=True,
    ),
    "exec": Wrapper(OptionSyntax(_takes("a"), {"a": "a"})),
    "command": Wrapper(OptionSyntax(_takes("", "p"), {"p": "p"})),
    "builtin": Wrapper(_NO),
    "catchsegv": Wrapper(_NO),
    "setsid": Wrapper(
        OptionSyntax(_takes("", "wait fork ctty"), {"w": "wait", "f": "fork", "c": "ctty"})
    ),
    "numactl": Wrapper(
        OptionSyntax(
            _takes(
                "interleave weighted-interleave preferred preferred-many physcpubind cpunodebind "
                "cpubind membind",
                "localalloc all",
            ),
            {"i": "interleave", "p": "preferred", "C": "physcpubind", "N": "cpunodebind",
             "c": "cpubind", "m": "membind", "l": "localalloc", "a": "all"},
        )
    ),
    "taskset": Wrapper(
        OptionSyntax(_takes("", "cpu-list all-tasks"), {"c": "cpu-list", "a": "all-tasks"}), 1
    ),
    "timeout": Wrapper(
        OptionSyntax(
            _takes("signal kill-after", "preserve-status foreground verbose"),
            {"s": "signal", "k": "kill-after", "p": "preserve-status", "f": "foreground",
             "v": "verbose"},
        ),
        1,
    ),
    "nice": Wrapper(OptionSyntax(_takes("adjustment"), {"n": "adjustment"})),
    "ionice": Wrapper(OptionSyntax(_takes("class classdata"), {"c": "class", "n": "classdata"})),
    "stdbuf": Wrapper(
        OptionSyntax(_takes("input output error"), {"i": "input", "o": "output", "e": "error"})
    ),
    "unbuffer": Wrapper(_NO),
    "setarch": Wrapper(
        OptionSyntax(_takes("", "addr-no-randomize"), {"R": "addr-no-randomize"}), 1
    ),
    "nsys": Wrapper(
        OptionSyntax(
            _takes(
                "trace output capture-range capture-range-end delay duration sample cpuctxsw stats "
                "force-overwrite cuda-memory-usage gpu-metrics-device gpu-metrics-devices kill "
                "wait export session-new backtrace cudabacktrace pytorch python-sampling "
                "nic-metrics mpi-impl",
                "",
            ),
            {"t": "trace", "o": "output", "c": "capture-range", "y": "delay", "d": "duration",
             "s": "sample", "f": "force-overwrite", "w": "wait", "x": "x"},
            unknown_values=True,
        ),
        verbs=("profile", "launch"),
    ),
    "rocprof": Wrapper(
        OptionSyntax(_takes("i o d", "stats hip-trace hsa-trace sys-trace roctx-trace timestamp"),
              {"i": "i", "o": "o", "d": "d"})
    ),
    "rocprofv3": Wrapper(
        OptionSyntax(_takes("output-directory output-file output-format",
                     "hip-trace hsa-trace kernel-trace sys-trace runtime-trace stats "
                     "memory-copy-trace marker-trace rccl-trace"),
              {"d": "output-directory", "o": "output-file", "s": "sys-trace", "r": "runtime-trace"})
    ),
    "kernprof": Wrapper(
        OptionSyntax(_takes("outfile setup unit", "line-by-line builtin view"),
              {"o": "outfile", "s": "setup", "u": "unit", "l": "line-by-line", "b": "builtin",
               "v": "view"})
    ),
    "py-spy": Wrapper(
        OptionSyntax(_takes("output format rate duration", "subprocesses native nonblocking"),
              {"o": "output", "f": "format", "r": "rate", "d": "duration", "s": "subprocesses"}),
        verbs=("record",),
    ),
}  # fmt: skip

PYTHON = OptionSyntax(
    _takes("c m W X Q check-hash-based-pycs", "B b d E h i I O OO P q s S u v V x version help"),
    {letter: letter for letter in "cmWXQBbdEhiIOPqsSuvVx"},
)
"""Options of the Python interpreter; `-c` and `-m` end them."""

SHELLS = {"bash", "sh", "zsh", "dash"}
SHELL = OptionSyntax(
    _takes("o O rcfile init-file", "c l i e u x v a login norc noprofile posix r s"),
    {letter: letter for letter in "clieuxvaorsO"},
)

_IDLE = """
amd-smi awk aws cat cd chmod clear cmake conda cp curl date dcgmi df dmesg du echo env export
false fi_info find free gcc getent git grep gzip head hf hipcc hl-smi hostname huggingface-cli
ibstat id ip jupyter jupyter-lab jupyter-notebook kill killall ldd lfs ln ls lscpu lsof lstopo
make mamba md5sum mkdir mksquashfs ml module module-info mv nproc numactl nvcc nvidia-smi ping pip
pip3 pkill printenv printf ps pwd ray rclone read rm rmdir rocm-smi rocminfo rsync s3cmd sacct
sbcast scancel scontrol scp sed seff set sha1sum sha256sum sinfo sleep sort source squeue ssh
break continue declare exit local readonly return shift unset
sstat strings tail tar taskset tee tensorboard test top touch tput trap true ulimit uname uniq
unsquashfs unzip uptime wait wc wget which whoami xargs xz zip zstd"""
IDLE = frozenset(_IDLE.split())
"""Programs that are never a job's main program."""
