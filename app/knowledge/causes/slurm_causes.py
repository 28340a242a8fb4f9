"""Meanings of Slurm's log lines: slurmstepd, srun, sbatch (Slurm 19-25)."""

from lumitui.app.knowledge.causes.meanings import STATE_RULES, LogRule
from lumitui.app.knowledge.causes.meanings import log_rule as _rule
from lumitui.remote.site.states import State

_TIME, _NODE, _TAKEN = (
    STATE_RULES[state] for state in (State.TIMEOUT, State.NODE_FAILED, State.PREEMPTED)
)
_CANCELLED = STATE_RULES[State.CANCELLED]

SLURM: tuple[LogRule, ...] = (
    _rule(
        "step-waited",
        r"srun: (?:Job (?:\d+ )?)?[Ss]tep creation (?:temporarily|still) disabled, retrying",
        "A step waited for cores, memory or GPUs that another step of the job was using.",
        "Give each step its share (`srun --exact` with its own --mem and --gpus), or run the "
        "steps one after another.",
    ),
    _rule(
        _TIME.id,
        r"DUE TO TIME LIMIT|: TIMEOUT\b|(?i:time limit exceeded)|walltime \d+ exceeded"
        r"|TERM_RUNLIMIT|because: timed-out",
        _TIME.sentence,
        _TIME.do,
    ),
    _rule(
        _NODE.id,
        r"DUE TO NODE FAILURE|[Nn]ode failure on|: NODE_FAIL\b"
        r"|srun: error: .*(?:[Nn]ode \S+ (?:down|not responding)|Communication connection failure"
        r"|Zero Bytes were transmitted or received)|\bnodes? lost\b|\bNODE_FAIL\b|; node fail",
        _NODE.sentence,
        _NODE.do,
    ),
    _rule(
        _TAKEN.id,
        r"DUE TO PREEMPTION|DUE TO JOB REQUEUE|(?i:job (?:has been |was |got )?preempted)"
        r"|\bState:? PREEMPTED\b|because: preempted|\bJobState=PREEMPTED",
        _TAKEN.sentence,
        _TAKEN.do,
    ),
    _rule(
        _CANCELLED.id,
        r"\*\*\* JOB \S+ ON \S+ CANCELLED AT \S+ \*\*\*",
        _CANCELLED.sentence,
        _CANCELLED.do,
    ),
    _rule(
        "refused",
        r"(?i:(?:batch job submission failed|job submit/allocate failed"
        r"|unable to allocate resources|allocation failure): (?P<what>.+))"
        r"|(?:sbatch|salloc|srun): error: (?P<limit>(?:QOS|Assoc|Max)\w*(?:Max|Limit|Grp)\w*)"
        r"|(?:sbatch|salloc|srun): error: (?P<memory>Memory specification can not be satisfied)"
        r"|(?:sbatch|salloc): (?:error: )?(?P<option>invalid partition.*|Invalid numeric value.*"
        r"|[Uu]nrecognized option.*|invalid option.*|This does not look like a batch script.*)"
        r"|(?P<policy>Job violates accounting/QOS policy)"
        r"|(?:sbatch|salloc): (?:error|fatal): (?P<said>(?!.*(?:DOS line|Unable to open file)).+)"
        r"|(?:sbatch|salloc): (?P<usage>(?:unrecognized|ambiguous|invalid|unknown).+)"
        r"|(?P<controller>[Uu]nable to contact slurm controller.*)",
        "Slurm refused the job: {what}.",
        "Compare account, partition, nodes, memory and time with the site's limits; if you have "
        "too many jobs, wait until others end.",
    ),
    _rule(
        "interconnect",
        r"Error configuring interconnect",
        "Slurm could not set up the network for a step.",
        "While another step runs, start a step on only one node at a time (`srun --overlap -n 1 "
        "-w NODE`): a network like Slingshot refuses a step on several nodes. If no other step "
        "ran, resubmit.",
    ),
    _rule(
        "step-refused",
        r"srun: error: (?:Unable to create step|Unable to confirm allocation)[^:]*: (?P<what>.+)"
        r"|srun: (?:fatal|error): (?P<rest>.*configuration is not available.*)"
        r"|srun: (?:fatal|error): (?P<task>.*(?:Memory required by task|More processors requested"
        r"|Invalid generic resource|Requested nodes? .*not available|can't (?:run|satisfy)).*)"
        r"|^srun: fatal: (?P<fatal>(?!Can not execute).+)"
        r"|srun: error: (?P<only>Only allocated .+|(?:CPU|Node|Task) count .+|Arbitrary dist.+"
        r"|.*mutually exclusive.*)|(?P<layout>Unable to layout tasks on given cpus)"
        r"|srun: (?P<option>(?:unrecognized|ambiguous|invalid|unknown) option.*)",
        "srun could not start the ranks inside the job ({what}).",
        "Compare the job's tasks, cores and memory with a node's.",
    ),
    _rule(
        "cpu-bind-reserved",
        # Slurm reports the cores of a whole node: the same bits of each byte are missing.
        r"(?i:cpu[- ]bind(?:ing)?) outside of job step allocation.*"
        r": 0x(?P<what>(?!FF|00)[0-9A-F]{2})(?P=what){6,}\b",
        "The CPU masks contain cores that the nodes reserve for the system: in each group of "
        "eight cores, jobs may use only those in the mask 0x{what}.",
        "Leave those cores out of the masks: `lumitui bind SITE` prints masks without them, and "
        "`lumitui lint` names the wrong ones. In a job file, use `binding: auto`.",
    ),
    _rule(
        "cpu-bind",
        r"(?i:cpu[- ]bind(?:ing)?) outside of job step allocation"
        r"|(?i:unable to satisfy cpu bind request|unable to set taskset)"
        r"|sched_setaffinity\b.{0,60}failed|(?i:(?:unable|failed) to set .{0,40}affinity)"
        r"|(?:taskset|numactl|libnuma): (?!.*No such file)"
        r".{0,40}(?:out of range|failed|[Ii]nvalid)",
        "The CPU masks contain cores that the job does not have.",
        "Use whole nodes (`exclusive: true` on a shared partition), or `binding: auto`.",
    ),
    _rule(
        "launch-failed",
        r"srun: error: (?P<what>Task launch for .+|Application launch failed.*"
        r"|task \d+ launch failed.*|Security violation.*|.*(?:Invalid job credential"
        r"|Job credential expired).*)"
        r"|slurmstepd\S*: error: (?P<script>execve\(\): \S*/slurm_script: No such file.*"
        r"|container_\w+.{0,20} failed.*)"
        r"|slurmstepd\S*: error: (?P<step>.*(?:task_init\(\) failed|Failed to invoke spank"
        r"|Unable to (?:create|load) |mpi/pmix\w*: .*(?:failed|error)).*)"
        r"|(?P<held>launch failed requeued held|[Pp]rolog (?:error|fail)\w*.*"
        r"|slurmstepd\S*: error: .*(?:spank|plugin_load|task_prolog).*)",
        "Slurm could not start the tasks on a node: {what}.",
        "Resubmit without that node (`sbatch: [--exclude=NODE]`); if it fails again, send this "
        "line to the site's support.",
    ),
)
"""Slurm's decisions about the job or its steps."""

WEAK: tuple[LogRule, ...] = (
    _rule(
        _CANCELLED.id,
        r"\*\*\* STEP \S+ ON \S+ CANCELLED AT \S+ \*\*\*|CANCELLED by \d+"
        r"|^\s*KeyboardInterrupt\b|Received SIGINT|got signal: 2\b"
        r"|scancel: (?:Terminating|Signaling) ",
        _CANCELLED.sentence,
        _CANCELLED.do,
    ),
    _rule(
        "terminated",
        r"srun: error: \S+: tasks? (?P<rank>\d{1,6})\S*: Terminated"
        r"|SignalException: Process \d+ got signal: 15"
        r"|Received (?:Signals\.SIGTERM|15 death signal|signal 15|SIGTERM: 15)"
        r"|died with <Signals\.SIGTERM|\(SIGTERM\) received",
        "The launcher or a cancellation ended the program (signal 15).",
        "Find the rank that ended first; if none did, find out whether a cancellation or a limit "
        "ended the job.",
    ),
)
"""Lines that Slurm and launchers also write after a rank's failure: count only alone."""
