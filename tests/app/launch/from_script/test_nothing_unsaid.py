"""Nothing of a script is lost without a word when it becomes a job file."""

import re
from itertools import islice
from pathlib import Path

import pytest

from lumitui.app.job.fields.text_fields import is_taken
from lumitui.app.job.spec import parse_job
from lumitui.app.knowledge.bash import read_script
from lumitui.app.launch.compose import compose, plain_script
from lumitui.app.launch.from_script.import_report import (
    ImportReport,
    composable,
    import_lines,
    import_report,
    job_file_text,
)
from lumitui.app.launch.site_names import expanded
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from tests.support.jobs.adopted.corpus import corpus, own, site_of
from tests.support.jobs.adopted.ledger import Written, unsaid
from tests.support.jobs.adopted.seen import base, seen
from tests.support.jobs.sites.official_jobs import sites


def made(text: str, site: Site) -> Written:
    report = import_report(read_script(text, site=site), site, "job")
    job = job_file_text(report, "x.sh")
    assert parse_job(job, "job") == report.spec
    return Written(report, job, script_of(report, site))


def script_of(report: ImportReport, site: Site) -> str:
    home = site.folders.get("HOME")
    account = report.spec.account
    spec = expanded(
        composable(report.spec),
        site,
        # As in the environment that `seen` gives.
        lambda path: "/home/me" if path == home else path.format(account=account, user="me"),
    )
    return plain_script(compose(spec, site), site, "job")


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_every_word_of_every_script_is_in_the_new_one_or_spoken_of(every: int) -> None:
    silent, count = list[str](), 0
    for name, text, site in islice(corpus(20 if every > 1 else 1), 0, None, every):
        try:
            written = made(text, site)
        except InputError:
            continue
        count += 1
        silent += [f"{name}: {what}" for what in unsaid(text, written)]
    assert silent == []
    assert count > (80 if every > 1 else 1000)


@pytest.mark.parametrize(
    "gone",
    ["#SBATCH --mail-user=me", "export NOBODY=1", "cp -r a b", "X=1", "umask 027", "ulimit -l 9"],
)
def test_a_part_that_nobody_speaks_of_is_found(gone: str) -> None:
    text = own()["srun with bash -c"]
    written = made(text, sites()["lumi"])
    first = text.index("export MASTER_ADDR")
    more = text[:first] + gone + "\n" + text[first:]
    if gone.startswith("#"):
        more = text.replace("#SBATCH --nodes", f"{gone}\n#SBATCH --nodes")
    assert list(unsaid(text, written)) == []
    assert list(unsaid(more, written))


@pytest.mark.parametrize(
    "name",
    # Two shells run each script: half of them do so among the slow tests.
    [
        pytest.param(name, marks=[pytest.mark.slow] * (number % 2))
        for number, name in enumerate(own())
    ],
)
def test_the_program_finds_the_arguments_and_variables_that_it_found_or_it_is_said(
    name: str, tmp_path: Path
) -> None:
    text = own()[name]
    site = site_of(text)
    report = made(text, site).report
    spec = composable(report.spec)
    layout = compose(spec, site).layout
    slurm = {
        "SLURM_NNODES": layout.nodes, "SLURM_JOB_NUM_NODES": layout.nodes,
        "SLURM_NTASKS": layout.nodes * layout.tasks_per_node,
        "SLURM_CPUS_PER_TASK": layout.cpus_per_task, "SLURM_GPUS_PER_NODE": layout.gpus_per_node,
        "SLURM_JOB_ACCOUNT": spec.account, **dict.fromkeys(spec.secrets, ""),
    }  # fmt: skip
    given = {key: str(value) or "set" for key, value in slurm.items()}
    program = (spec.script or "").rsplit("/", 1)[-1]
    old = [each for each in seen(text, tmp_path / "old", given) if each.after(program) is not None]
    new = seen(script_of(report, site), tmp_path / "new", given)
    said = [f"{item.what} {item.words}" for item in (*report.changed, *report.lost)]
    assert [each.after(program) is not None for each in new] == [True]
    if not old:
        assert any("the job runs the file" in words for words in said), "`-m` is said"
        return
    one, other = old[-1], new[-1]
    words = [word for word in other.after(program) or () if word not in (one.after(program) or ())]
    # A function's text says nothing of a word; `$USER` is put in as in the environment of `seen`.
    lines = [each.replace("$USER", "me") for each in said if "\n" not in each]
    assert not [word for word in words if not any(_names(each, word) for each in lines)]
    if one.folder != other.folder.replace("code", "."):
        assert any(each.startswith("cd ") for each in said)
    every = [*said, *(f"{item.what} {item.words}" for item in (*report.kept, *report.derived))]
    for variable in {*one.variables, *other.variables}:
        if variable in base() or variable.startswith(("SLURM", "PET_")) or is_taken(variable):
            continue
        spoken = every
        if other.variables.get(variable) != one.variables.get(variable):
            if variable not in one.variables:  # that it is kept, as if it had been there, is wrong
                spoken = [each for each in every if not each.startswith(f"{variable}=")]
            called = variable.removeprefix("BASH_FUNC_").removesuffix("%%")
            assert any(re.search(rf"\b{called}\b", each) for each in spoken), variable


@pytest.mark.parametrize(
    ("name", "what", "words"),
    [
        ("turned round and timed", "!", "so `!` is dropped"),
        ("timed", "time -p", "the new launch does not have it"),
        ("a program in a heredoc", "cat > train.py", "put the file it writes into"),
        ("left before the launch", "[ -f done.txt ] && exit 0", "has no conditions"),
        ("left before the launch", "test -d multi || {", "has no conditions"),
        ("an alias", "alias go=", "has no aliases"),
        ("a coprocess", "coproc nvidia-smi -l 5", "runs only"),
        ("launched by xargs", "xargs -n 1", "the new launch does not have it"),
        ("another separator", "IFS=,", "bash splits words at it"),
        (
            "attributes of variables",
            "declare -u MODE=fast",
            "bash converts such variables",
        ),
        ("local variables", "prepare() {", "has no functions"),
    ],
)
def test_a_rare_form_is_lost_by_its_name(name: str, what: str, words: str) -> None:
    text = own()[name]
    lost = made(text, site_of(text)).report.lost
    assert [one for one in lost if one.what.startswith(what) and words in one.words]


def test_a_script_that_ends_above_its_launch_is_said_to() -> None:
    text = own()["timed"].replace("time cp a b", "exit 0")
    report = made(text, sites()["lumi"]).report
    assert [one.words for one in report.lost if one.what == "exit 0"] == [
        "the script may end here, before its program starts"
    ]


def _names(text: str, word: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text))


def test_the_report_of_a_plain_script_fits_a_terminal() -> None:
    for name, text in own().items():
        lines = list(import_lines(made(text, site_of(text)).report))
        assert len(lines) <= 22, f"{name}: two more lines name the site and the file"
        assert all(len(line) <= 100 for line in lines), name
