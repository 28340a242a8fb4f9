"""The rules about job files: their severity, their reason and their source.

Each rule is a function in this folder, in `adviser` or in `app/launch/send`, and reports its
findings with `hit`. `app/knowledge` has the rules about any script. `lumitui rules` lists both.
"""

from collections.abc import Callable, Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.knowledge.rule import Topic
from lumitui.app.knowledge.rule_table import SCRIPT_RULES
from lumitui.app.launch.placement import Placement
from lumitui.remote.site.finding import Finding, Fix, Severity
from lumitui.remote.site.source_position import at_key

LaunchRule = Callable[[Launch, Placement], Iterator[Finding]]
"""Yields findings on a launch at a site."""
_SCRIPT = "templates/job/job.sh.j2"
_FILES = "the files on this machine"
_JOB_FILE = "the job file"


def _topic(
    name: str, severity: Severity, title: str, why: str, source: str = "the site's profile"
) -> Topic:
    return Topic(name, severity, title, why, source, "job file")


TOPICS = (
    _topic("launcher", "error", "a launcher that does not work at the site",
           "The launch fails, or its ranks do not find each other."),
    _topic("torchrun-unbound", "warning", "torchrun that does not bind its workers",
           "All workers share all cores of the node.",
           "pytorch, torch/numa/binding.py: --numa-binding"),
    _topic("strict-unchecked", "warning", "`proof: strict` without planned cores",
           "There is nothing to compare, so the key has no effect.", _SCRIPT),
    _topic("own-option", "error", "an #SBATCH option that lumitui writes itself",
           "The two lines would contradict each other.",
           _SCRIPT),
    _topic("threads-as-cores", "error", "an #SBATCH option that reduces the planned cores",
           "Slurm counts hardware threads as cores, and srun refuses masks with cores that the job "
           "does not have.",
           "sbatch(1) --hint, --threads-per-core, --extra-node-info; srun(1) --cpu-bind"),
    _topic("signal-lost", "warning", "a signal that the launcher does not forward",
           "The program gets no warning, so it does not save before its limit.",
           "sbatch(1) --signal; deepspeed/launcher/launch.py"),
    _topic("no-checkpoint-signal", "note", "a long job whose script gets no signal",
           "At the time limit, the training since the last checkpoint is lost.",
           "sbatch(1) --signal"),
    _topic("signal-early", "warning", "a stop signal in the first half of the job, or at its start",
           "The program saves and stops when it has hardly begun.",
           "sbatch(1) --signal"),
    _topic("memory-fit", "warning", "a bundled trainer that needs more memory than a GPU has",
           "The job waits in the queue, then runs out of memory in its first step.",
           "templates/model_memory.yaml"),
    _topic("no-heartbeat", "warning", "`hang:` without a bundled trainer",
           "Only the bundled trainers report whether their ranks make progress.",
           "trainers/monitor/watchdog.py"),
    _topic("chain-requeue", "error", "a chain that cannot be requeued",
           "The run ends after one time limit.",
           "scontrol(1) requeue; sbatch(1) --requeue; the site's profile"),
    _topic("chain-resume", "error", "a chain whose script cannot resume",
           "Each attempt would repeat the same training.", _SCRIPT),
    _topic("chain-signal", "error", "a chain whose script gets no signal",
           "No attempt ends in time to be requeued.",
           "sbatch(1) --signal; templates/job/chain.sh"),
    _topic("chain-exit", "warning", "a chain whose launcher loses the exit code",
           "The chain ends after one attempt.", "torch/distributed/run.py; templates/job/chain.sh"),
    _topic("chain-contract", "note", "a chain whose script must end with exit code 85",
           "With any other exit code, the chain ends.", "templates/job/chain.sh"),
    _topic("relaunch-resume", "error", "a relaunch whose script cannot resume",
           "Each launch would repeat the same training.", "templates/job/relaunch.sh"),
    _topic("launcher-in-each-task", "error", "a shell script that starts ranks in each rank",
           "With eight ranks per node, 64 ranks share eight GPUs.",
           "pytorch, torch/distributed/run.py: one agent a node; srun(1)"),
    _topic("laptop-path", "error", "a laptop's path in a job file",
           "The site does not have it.",
           "docs/scripts.md; the site's profile, work_root"),
    _topic("relative-path", "error", "a relative path for a container's image or bind",
           "The job starts in the run's folder, which does not contain it.",
           "docs/scripts.md"),
    _topic("grid-output", "warning", "runs of a grid that write to the same place",
           "Each run overwrites the checkpoints and logs of the others.", "docs/scripts.md"),
    _topic("at-once", "note", "runs of a grid that wait for each other",
           "Slurm starts each run once another one has ended.", "sbatch(1) --dependency=afterany"),
    _topic("zero-stage", "warning", "a strategy and a DeepSpeed configuration that differ",
           "DeepSpeed uses the configuration's stage, so a rank may need more memory than planned.",
           "DeepSpeed configuration, zero_optimization.stage"),
    _topic("deepspeed-args", "warning", "a DeepSpeed configuration in `args:` alone",
           "A resubmission on other nodes does not adapt its batch sizes, and DeepSpeed fails.",
           "docs/scripts.md"),
    _topic("two-micro-batches", "warning", "a micro batch that differs from DeepSpeed's",
           "The global batch differs from the one in the preview.",
           "DeepSpeed configuration, train_micro_batch_size_per_gpu"),
    _topic("batch-split", "error", "a batch size that is 0 or that the ranks cannot share evenly",
           "A script that divides it among the ranks stops, or trains on fewer samples than the "
           "preview shows.", "docs/scale_up.md"),
    _topic("job-name", "warning", "a job name that disables Lightning's Slurm detection",
           "Each rank trains on its own.",
           "Lightning-AI/pytorch-lightning, plugins/environments/slurm.py"),
    _topic("bare-python", "warning", "the nodes' own Python, without container and modules",
           "That Python lacks PyTorch (ModuleNotFoundError) or does not exist (exit code 127).",
           "the site's profile, containers, modules and python"),
    _topic("image-generation", "error", "an image of a different generation than the job's",
           "Modules, command and torchrun options do not match the image.",
           "the site's profile, containers"),
    _topic("image-unknown", "note", "an image whose name does not show its generation",
           "The job uses the modules and options of the generation in the job file.",
           "the site's profile, containers"),
    _topic("venv-offline", "error", "an environment that is built without a package index",
           "pip finds no package, and the job ends before its launch.", "the site's profile, venv"),
    _topic("venv-in-job", "note", "an environment that the first job builds",
           "Meanwhile, its GPUs are idle but billed.", "the site's profile, venv"),
    _topic("venv-home", "warning", "an environment in a home folder",
           "Home folders are small, and slow or missing on compute nodes.",
           "LUMI user guide, storage; CSC user guide, disk"),
    _topic("venv-wheel", "error", "a wheel for another Python or processor",
           "pip refuses it, and the job ends before its launch.",
           "the site's profile; packaging.python.org, platform compatibility tags"),
    _topic("venv-replaces", "warning", "a package that would replace one in the image",
           "A build from the package index does not support the site's GPUs or its network.",
           "the site's profile, venv.keeps"),
    _topic("install-in-script", "note", "packages that the script installs during the job",
           "All ranks install at once, while the site bills all GPUs.",
           "the site's profile, internet_on_compute_nodes"),
    _topic("literal-argument", "warning", "a variable in an argument or path that no shell expands",
           "The program gets the literal text, such as `$LR`, and fails, or creates a folder "
           "of that name.",
           "docs/scripts.md: only $STAGE_NAME, $AFTER_DIR, $USER and the profile's `folders:` "
           "are expanded"),
    _topic("notify-offline", "warning", "a notification from nodes without internet",
           "The job ends without a notification.", "the site's profile, internet_on_compute_nodes"),
    _topic("notify-mail", "warning", "mail at a site that is not known to send mail",
           "Nobody gets an email.", "the site's profile, mail"),
    _topic("stage-name", "error", "a staged name that the job file lacks",
           "The variable is empty in the job.", _JOB_FILE),
    _topic("stage-variable", "error", "a variable of staged data that the job file also sets",
           "The program would not find the staged data.", _JOB_FILE),
    _topic("link-taken", "error", "a link with the path of a file or folder in the code",
           "lumitui cannot create the run's folder.", _FILES),
    _topic("stage", "error", "staged data that does not exist on this machine",
           "lumitui cannot send the job.", _FILES),
    _topic("stage-size", "note", "the amount of staged data",
           "lumitui uploads only what the site lacks.", _FILES),
    _topic("stage-private", "warning", "staged files that are private on this machine",
           "They may have to stay private.", _FILES),
    _topic("secret-needed", "error", "a file that the program needs and lumitui does not send",
           "The file looks like a secret.", _FILES),
    _topic("after", "note", "a run in `after:` that has already ended",
           "Slurm forgets ended jobs, so the job starts without waiting.",
           "sbatch(1) --dependency"),
    _topic("dependency-number", "note", "a dependency on a job by its ID",
           "lumitui knows only its own runs, so it cannot judge how that job ended.",
           "sbatch(1) --dependency"),
    _topic("then", "note", "the order of the jobs in `then:`",
           "Slurm starts each job once the previous one has ended as required.",
           "sbatch(1) --dependency"),
    _topic("secrets", "error", "a secret without a value on this machine",
           "The program would get an empty variable.", _FILES),
    _topic("project", "error", "a project folder that does not exist",
           "lumitui cannot send the job.", _FILES),
    _topic("workdir", "error", "a working folder that the project lacks",
           "The command could not start.", _FILES),
    _topic("script", "error", "a script that the project lacks",
           "Every rank would fail immediately.", _FILES),
    _topic("argument-file", "warning", "a configuration in `args:` that the project lacks",
           "After the wait in the queue, the program fails when it opens the file.", _FILES),
    _topic("secret-contents", "warning", "a file with a line that looks like a key",
           "lumitui does not send it, because others could use a key in a shared folder."),
    _topic("code-large", "warning", "large files, or results of a run, among the code",
           "lumitui sends each changed file again, and each run has a copy of all files.", _FILES),
    _topic("secret-files", "warning", "files whose names suggest secrets",
           "lumitui sends them only if `ship_secrets:` lists them."),
    _topic("secret-shipped", "note", "files with secrets that you chose to send",
           "Members of the project may be able to read them on the site.", _JOB_FILE),
    _topic("ship-secrets-unused", "note", "an entry of `ship_secrets:` that matches no file",
           "The entry has no effect.", _JOB_FILE),
    _topic("ship-all-secrets", "warning", "a `ship_secrets:` that matches every file",
           "Keys that the job does not need, even future ones, go to a shared file system.",
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
    """Return a finding of `rule` at a key of the job file.

    `severity` and `source` override the rule's own.
    """
    topic = _TOPICS[rule]
    return Finding(
        rule, severity or topic.severity, message, do, source or topic.source, at_key(key), fix,
        final=final,
    )  # fmt: skip
