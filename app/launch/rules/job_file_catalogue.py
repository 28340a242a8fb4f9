"""The rules about a job file alone: how bad what one finds is, why, and who says so.

Each rule is a function of this folder, of `adviser` or of `app/launch/send`, and reports what it
finds with `hit`; the rules about any script are in `app/knowledge`. `lumitui rules` lists both.
"""

from collections.abc import Callable, Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.knowledge.rule_catalogue import Topic
from lumitui.app.knowledge.rule_table import SCRIPT_RULES
from lumitui.app.launch.placement import Placement
from lumitui.remote.site.finding import Finding, Fix, Severity
from lumitui.remote.site.source_position import at_key

LaunchRule = Callable[[Launch, Placement], Iterator[Finding]]
"""Yields what it finds wrong or unwise about a launch at a site."""
_SCRIPT = "templates/job/job.sh.j2"
_FILES = "the files here"
_JOB_FILE = "the job file"


def _topic(
    name: str, severity: Severity, title: str, why: str, source: str = "the site's profile"
) -> Topic:
    return Topic(name, severity, title, why, source, "job file")


TOPICS = (
    _topic("launcher", "error", "a launcher that does not work at the site",
           "The launch fails, or its ranks do not find each other."),
    _topic("torchrun-unbound", "warning", "a torchrun that does not bind its workers",
           "All workers share all cores of the node.",
           "pytorch, torch/numa/binding.py: --numa-binding"),
    _topic("strict-unchecked", "warning", "`proof: strict` without planned cores",
           "Nothing can be compared, so the key stops nothing.", _SCRIPT),
    _topic("own-option", "error", "an #SBATCH option that lumitui writes itself",
           "Two lines would say different things; the run is found by its name and its output.",
           _SCRIPT),
    _topic("signal-lost", "warning", "a signal that the launcher does not pass on",
           "The program is not warned, and saves nothing before its limit.",
           "sbatch(1) --signal; deepspeed/launcher/launch.py"),
    _topic("no-checkpoint-signal", "note", "a long job whose script gets no signal",
           "What was trained since the last checkpoint is lost at the time limit.",
           "sbatch(1) --signal"),
    _topic("memory-fit", "warning", "a bundled trainer that needs more memory than a GPU has",
           "The job waits in the queue, starts, and ends with out of memory in its first step.",
           "templates/model_memory.yaml"),
    _topic("no-heartbeat", "warning", "`hang:` without a bundled trainer",
           "Only the bundled trainers say whether their ranks move.",
           "trainers/monitor/watchdog.py"),
    _topic("chain-requeue", "error", "a chain that cannot go back into the queue",
           "The run ends after one time limit.",
           "scontrol(1) requeue; sbatch(1) --requeue; the site's profile"),
    _topic("chain-resume", "error", "a chain whose script cannot continue",
           "Each attempt would train the same again.", _SCRIPT),
    _topic("chain-signal", "error", "a chain whose script is not warned",
           "No attempt ends in time to go back into the queue.",
           "sbatch(1) --signal; templates/job/chain.sh"),
    _topic("chain-exit", "warning", "a chain whose launcher loses the exit code",
           "The chain ends after one attempt.", "torch/distributed/run.py; templates/job/chain.sh"),
    _topic("chain-contract", "note", "a chain whose script must end with exit code 85",
           "With another code the chain takes the run as finished.", "templates/job/chain.sh"),
    _topic("relaunch-resume", "error", "a relaunch whose script cannot continue",
           "Each launch would train the same again.", "templates/job/relaunch.sh"),
    _topic("launcher-in-each-task", "error", "a shell script that starts ranks in each rank",
           "Each rank starts all ranks of a node: eight tasks make 64 ranks on eight GPUs.",
           "pytorch, torch/distributed/run.py: one agent a node; srun(1)"),
    _topic("laptop-path", "error", "a path of a laptop in a job file",
           "The program finds no such file or folder on the site.",
           "docs/scripts.md; the site's profile, work_root"),
    _topic("grid-output", "warning", "runs of a grid that all write to one place",
           "Each run overwrites the checkpoints and logs of the others.", "docs/scripts.md"),
    _topic("at-once", "note", "runs of a grid that wait for each other",
           "Slurm starts each once another one has ended.", "sbatch(1) --dependency=afterany"),
    _topic("zero-stage", "warning", "a strategy and a DeepSpeed configuration that differ",
           "DeepSpeed follows the configuration, so that memory is not what the strategy says.",
           "DeepSpeed configuration, zero_optimization.stage"),
    _topic("two-micro-batches", "warning", "two micro batches that differ",
           "The training has another global batch than the preview shows.",
           "DeepSpeed configuration, train_micro_batch_size_per_gpu"),
    _topic("job-name", "warning", "a job name that switches Lightning's Slurm detection off",
           "Each rank then believes to be alone.",
           "Lightning-AI/pytorch-lightning, plugins/environments/slurm.py"),
    _topic("bare-python", "warning", "the system's own Python, without container and modules",
           "It has no PyTorch: every rank ends with ModuleNotFoundError.",
           "the site's profile, containers, modules and python"),
    _topic("image-generation", "error", "an image of another generation than the job uses",
           "Modules, call and options of torchrun do not fit the image.",
           "the site's profile, containers"),
    _topic("image-unknown", "note", "an image whose name does not show its generation",
           "Modules and options are those of the generation that the job names.",
           "the site's profile, containers"),
    _topic("venv-offline", "error", "an environment built without access to a package index",
           "pip finds no package, and the job ends before its launch.", "the site's profile, venv"),
    _topic("venv-in-job", "note", "an environment that the first job builds",
           "Its GPUs wait and are billed meanwhile.", "the site's profile, venv"),
    _topic("venv-home", "warning", "an environment in a home folder",
           "Homes are small, and slow or not seen on compute nodes.",
           "LUMI user guide, storage; CSC user guide, disk"),
    _topic("venv-wheel", "error", "a wheel that does not fit Python or processor",
           "pip refuses it, and the job ends before its launch.",
           "the site's profile; packaging.python.org, platform compatibility tags"),
    _topic("venv-replaces", "warning", "a package that would replace one of the image's own",
           "The one of an index is not built for the site's GPUs and network.",
           "the site's profile, venv.keeps"),
    _topic("install-in-script", "note", "packages that the script installs in the job",
           "Every rank installs at once, while all GPUs are billed.",
           "the site's profile, internet_on_compute_nodes"),
    _topic("literal-argument", "warning", "a variable in an argument that no shell expands",
           "Arguments are sent quoted: the program gets `$LR` or `$1` as these letters, and "
           "reads no number, or makes a folder of that name.",
           "docs/scripts.md: only $STAGE_NAME, $USER and the profile's `folders:` are expanded"),
    _topic("notify-offline", "warning", "a notice from nodes without internet",
           "The job ends, and nobody is told.", "the site's profile, internet_on_compute_nodes"),
    _topic("notify-mail", "warning", "a mail at a site that is not known to send any",
           "Nobody gets a mail.", "the site's profile, mail"),
    _topic("stage-name", "error", "a name of staged data that the job file does not have",
           "The variable is empty in the job.", _JOB_FILE),
    _topic("stage-variable", "error", "a variable of staged data that the job file sets itself",
           "The program would not find what was staged.", _JOB_FILE),
    _topic("link-taken", "error", "a link that the code has a file or folder for",
           "The run's folder cannot be made.", _FILES),
    _topic("stage", "error", "staged data that is not on this machine",
           "Nothing can be sent.", _FILES),
    _topic("stage-size", "note", "how much data is staged",
           "What the site has already is not sent again.", _FILES),
    _topic("stage-private", "warning", "staged files that other people here may not read",
           "Perhaps they were to stay on this machine.", _FILES),
    _topic("secret-needed", "error", "a program that would be sent without a file it needs",
           "The file looks like a secret, so it is kept back.", _FILES),
    _topic("after", "note", "a run in `after:` that has already ended",
           "Slurm forgets ended jobs, so the job starts without waiting for it.",
           "sbatch(1) --dependency"),
    _topic("secrets", "error", "a secret that has no value on this machine",
           "The program would find an empty variable.", _FILES),
    _topic("project", "error", "a project folder that is not there",
           "Nothing can be sent.", _FILES),
    _topic("workdir", "error", "a working folder that the project does not have",
           "The command could not be started there.", _FILES),
    _topic("script", "error", "a script that the project does not have",
           "Every rank would end at once.", _FILES),
    _topic("secret-contents", "warning", "a file with a line that has the shape of a key",
           "It is not sent: a key in a shared folder belongs to everybody there."),
    _topic("code-large", "warning", "large files, or results of a run, that are sent as code",
           "Each changed file is sent again, and each run has a copy of all.", _FILES),
    _topic("secret-files", "warning", "files whose names are those of secrets",
           "They are not sent; `ship_secrets:` sends them."),
    _topic("secret-shipped", "note", "files with secrets that you chose to send",
           "All members of the project can perhaps read them there.", _JOB_FILE),
    _topic("ship-secrets-unused", "note", "a name in `ship_secrets:` that no file has",
           "The line has no effect.", _JOB_FILE),
    _topic("ship-all-secrets", "warning", "a `ship_secrets:` that names every file",
           "Keys that the job does not need lie on a shared file system, later ones too.",
           "docs/scripts.md; SECURITY.md"),
)  # fmt: skip
"""The rules about a job file, by subject: launch, container, files."""
_TOPICS: dict[str, Topic] = {one.id: one for one in (*SCRIPT_RULES, *TOPICS)}


def hit(
    rule: str,
    key: str,
    message: str,
    do: str,
    *,
    fix: Fix | None = None,
    severity: Severity | None = None,
    source: str = "",
    final: bool = False,
) -> Finding:
    """Return what `rule` found at a key of the job file.

    `severity` and `source` take the place of the rule's own, where the case is another.
    """
    topic = _TOPICS[rule]
    return Finding(
        rule, severity or topic.severity, message, do, source or topic.source, at_key(key), fix,
        final=final,
    )  # fmt: skip
