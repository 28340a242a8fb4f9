"""Where nodes reach no internet, the adviser names what a job would download; elsewhere nothing."""

import pytest

from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.knowledge.program.python_reader import read_python
from lumitui.app.knowledge.program.step_program import downloads
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites

MN5 = Sites([BUILT_IN]).load("mn5")
CLOSED = MN5.model_copy(update={"partitions": MN5.partitions})
OPEN = MN5.model_copy(update={"internet_on_compute_nodes": True})
JOB = f"""\
name: t
site: mn5
account: ehpc01
partition: {next(iter(MN5.partitions))}
time: "01:00:00"
script: train.py
launcher: {MN5.launchers[0]}
"""


def job(more: str) -> JobSpec:
    return parse_job(JOB + more, "job.yaml")


def said(more: str, site: Site = CLOSED) -> dict[str, tuple[str, str]]:
    found = findings(compose(job(more), site), site)
    ours = [item for item in found if item.rule in ("offline", "stage-name", "stage-variable")]
    return {item.at.field: (item.severity, item.message) for item in ours}


@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        ("args: [--data=https://x.org/a.tar]", "args", "https://x.org/a.tar"),
        ("args: [--model_name_or_path, gpt2]", "args", "gpt2 (--model_name_or_path)"),
        ("args: [--model=openai/gpt2]", "args", "openai/gpt2 (--model)"),
        ("args: [--dataset_name, wikitext]", "args", "wikitext (--dataset_name)"),
        ("env: {HF_ENDPOINT: 'https://hub'}", "env.HF_ENDPOINT", "https://hub"),
        ("env: {TRANSFORMERS_OFFLINE: '0'}", "env.TRANSFORMERS_OFFLINE", "OFFLINE is 0"),
        ("env: {HF_HUB_OFFLINE: '0'}", "env.HF_HUB_OFFLINE", "HF_HUB_OFFLINE is 0"),
    ],
)
def test_what_would_be_downloaded_is_named(more: str, field: str, words: str) -> None:
    severity, message = said(more)[field]
    assert severity == "warning" and words in message
    assert not said(more, OPEN)


@pytest.mark.parametrize(
    "more",
    [
        "args: [--model=resnet50, --data=/gpfs/data, --model-dir, models/x.pt]",
        "args: [--model_name_or_path, $STAGE_MODEL]\nstage: {MODEL: ~/gpt2}",
        "args: [--model_name_or_path, ./gpt2]",
        "env: {WANDB_MODE: offline, HTTPS_PROXY: 'http://proxy:80'}",
    ],
)
def test_what_is_on_the_site_is_not_named(more: str) -> None:
    assert [text for text in said(more).values() if "models/x.pt" not in text[1]] == []


def test_a_name_that_is_not_staged_is_an_error() -> None:
    assert said("args: [$STAGE_OTHER]\nstage: {MODEL: x}")["args"][0] == "error"


def test_a_job_there_gets_the_offline_variables() -> None:
    assert 'export HF_HUB_OFFLINE="1"' in compose(job(""), CLOSED).script
    assert "HF_HUB_OFFLINE" not in compose(job(""), OPEN).script
    assert "export HF_HUB_OFFLINE=0" in compose(job("env: {HF_HUB_OFFLINE: '0'}"), CLOSED).script


SCRIPT = """
MNIST("data", download=True)
MNIST("data", download=False)
AutoModel.from_pretrained("gpt2")
AutoModel.from_pretrained("./gpt2"); AutoModel.from_pretrained(args.model)
AutoModel.from_pretrained("gpt2", local_files_only=True)
datasets.load_dataset("wikitext", "raw")
torch.hub.load("pytorch/vision", "resnet18")
wandb.init(project="x"); wandb.init(mode="online")
urllib.request.urlopen(x)
"""


def test_calls_of_a_script_that_download_are_found() -> None:
    found = {(one.at.line, one.words) for one in downloads(read_python(SCRIPT, "train.py"))}
    assert found == {
        (2, "MNIST(download=True)"),
        (4, 'from_pretrained("gpt2")'),
        (7, 'load_dataset("wikitext")'),
        (8, "torch.hub.load(...)"),
        (9, 'wandb.init(mode="online")'),
        (10, "urllib.request.urlopen(...)"),
    }


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ("env: {STAGE_DATA: /x}", "env.STAGE_DATA"),
        ("secrets: [STAGE_DATA]", "secrets"),
    ],
)
def test_a_variable_of_staged_data_is_not_set_by_the_job_file(more: str, field: str) -> None:
    severity, message = said(f"{more}\nstage: {{DATA: ~/data}}")[field]
    assert severity == "error" and "STAGE_DATA" in message
    assert not said(f"{more}\nstage: {{OTHER: ~/data}}")
