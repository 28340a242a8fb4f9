"""Hostile text in every field of a job file: refused with field and line, or carried as it is."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.job.fields.text_fields import is_taken
from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.app.launch import deepspeed_batch
from lumitui.app.launch.compose import compose, plain_script
from lumitui.app.launch.launcher_templates import TEMPLATES
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.shell_text import quote
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.transfer.results.fetch_files import fetch
from lumitui.remote.transport.local import Local
from tests.support.attacks.hostile_text import (
    CANARY,
    as_yaml,
    canaries,
    fuzzed,
    one_line,
    passable,
    refused,
)
from tests.support.program.command_line import Here

JOB: dict[str, object] = {
    "name": "hello",
    "site": "lumi",
    "account": "project_462000001",
    "partition": "small-g",
    "gpus_per_node": 1,
    "time": "00:05:00",
    "script": "hello.py",
}
FREE = ("args", "resume", "env", "links", "name", "image", "binds", "venv", "script", "workdir")
"""Fields whose text goes to the site as it is."""
PATTERNED = ("account", "partition", "memory", "signal", "time", "nodes", "strategy", "trainer")
"""Fields of a form that no hostile text has."""
LUMI = Sites([BUILT_IN]).load("lumi")


def with_field(field: str, text: str) -> dict[str, object]:
    """Return the job with `text` in `field`."""
    values: dict[str, dict[str, object]] = {
        "args": {"args": [text]},
        "resume": {"resume": [text]},
        "env": {"env": {"VALUE": text}},
        "env name": {"env": {text: "x"}},
        "secrets": {"secrets": [text]},
        "links": {"links": {"data": text}},
        "link name": {"links": {text: "/scratch"}},
        "image": {"container": {"image": text}},
        "binds": {"container": {"binds": [text]}},
        "venv": {"container": {"venv": text}},
        "generation": {"container": {"generation": text}},
        "metrics": {"metrics": {"x": text}},
        "fetch": {"fetch": [text]},
        "sbatch": {"sbatch": [text]},
        "deepspeed": {"deepspeed": {"config": text}},
        "batch": {"scale": {"batch": {"arg": text}}},
        "global batch": {"scale": {"batch": {"arg": text, "arg_is": "global"}}},
        "lr": {"scale": {"lr": {"arg": text}}},
        "stage": {"stage": {"DATA": text}},
        "stage link": {"stage": {"DATA": {"path": ".", "link": text}}},
        "packages": {"venv": [text]},
        "modules": {"modules": [text]},
        "activate": {"activate": [text]},
        "after": {"after": [text]},
        "requirements": {"venv": text},
        "wheels": {"venv": {"requirements": ["x"], "wheels": text}},
        "ship_secrets": {"ship_secrets": [text]},
        "grid": {"grid": {"--lr": [text]}},
        "grid name": {"grid": {text: ["1"]}},
        "then": {"then": {"evaluate": {"args": [text]}}},
        "then name": {"then": {text: {"nodes": 1}}},
        "follow_links": {"follow_links": [text]},
        "notify": {"notify": text},
        "mail": {"notify": {"mail": text}},
    }
    return JOB | values.get(field, {field: text})


def as_typed(data: dict[str, object]) -> JobSpec:
    """Return the job as `resubmit --set` makes it, where no file is read."""
    return changed(parse_job(as_yaml(JOB), "job.yaml"), data, "setting")


OTHERS = (
    "env name",
    "secrets",
    "link name",
    "generation",
    "metrics",
    "fetch",
    "sbatch",
    "deepspeed",
    "after",
    "modules",
    "python",
    "activate",
)
ALL = (*FREE, *PATTERNED, *OTHERS, "batch", "site", "launcher", "project")


@pytest.mark.parametrize("field", ALL)
@fuzzed(8)
@given(text=refused)
def test_text_unfit_for_a_command_is_refused_with_its_line(field: str, text: str) -> None:
    data = with_field(field, text)
    with pytest.raises(InputError, match=r"job\.yaml, line \d+: .*control|job\.yaml:\d+: "):
        parse_job(as_yaml(data), "job.yaml")
    with pytest.raises(InputError, match=r"setting:1: "):
        as_typed(data)


@pytest.mark.parametrize("field", PATTERNED)
@fuzzed(25)
@given(text=passable.filter(lambda text: not re.fullmatch(r"[\w.@:/+-]+", text)))
def test_hostile_text_in_a_field_with_a_form_names_field_and_line(field: str, text: str) -> None:
    if text.strip() in ("", "~", "null"):
        return  # the same as leaving it out
    line = list(with_field(field, text)).index(field) + 1
    with pytest.raises(InputError, match=rf"job\.yaml:{line}: {field}: "):
        parse_job(as_yaml(with_field(field, text)), "job.yaml")


@pytest.mark.parametrize("field", ["env name", "secrets"])
@pytest.mark.parametrize(
    "name", ["A\n", "A B", "", "1A", "A=b", "É", f"A;touch {CANARY}", "UID", "rc", "_"]
)
def test_a_variable_is_a_name_and_none_of_the_scripts_own(field: str, name: str) -> None:
    with pytest.raises(InputError, match=r"job\.yaml:8: (env|secrets): "):
        parse_job(as_yaml(with_field(field, name)), "job.yaml")


def test_the_variables_of_the_script_are_those_that_are_refused() -> None:
    templates = [
        TEMPLATES / "job/job.sh.j2",
        TEMPLATES / "job/lumitui.sh",
        TEMPLATES / "job/proof.sh",
        *(TEMPLATES / "launchers").glob("*.j2"),
    ]
    text = "".join(path.read_text() for path in templates)
    names = set(re.findall(r"(?:^|[;{ ]|export )([A-Za-z_]+)=(?!=)[^ ]", text, re.MULTILINE))
    names |= set(re.findall(r"\bfor (\w+) in \"", text))
    shown = {"summary", "tasks", "binding", "multi_node", "nnodes", "endpoint", "id", "backend"}
    shown |= {"SLURM_CPU_BIND", "SLURM_OVERLAP", "I_MPI_PIN"}  # of the command mpirun alone
    shown |= {"HWLOC_COMPONENTS"}  # a job file may set it
    shown |= {"SLURM_CPUS_PER_TASK"}  # of the ranks alone, after srun
    assert [name for name in names - shown if not is_taken(name)] == []


@pytest.mark.parametrize("field", ["args", "env", "binds", "links", "name", "image", "venv"])
@fuzzed(20)
@given(text=st.one_of(one_line, st.just("\\")))
def test_what_is_carried_is_read_back_as_it_was(field: str, text: str) -> None:
    if field == "name" and not 0 < len(text) <= 100:
        return
    data = with_field(field, text)
    spec = parse_job(as_yaml(data), "job.yaml")
    assert JobSpec.model_validate_json(json.dumps(spec.model_dump(mode="json"))) == spec
    assert spec.model_dump(mode="json", exclude_defaults=True) == data


@pytest.fixture(scope="module")
def words_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("words")


@pytest.mark.parametrize("shell", ["sh", "bash", "busybox sh"])
@fuzzed(40)
@given(words=st.lists(passable, min_size=1, max_size=30))
def test_a_quoted_word_is_one_word_of_every_shell(
    words_folder: Path, shell: str, words: list[str]
) -> None:
    script = "printf '%s\\0' " + " ".join(map(quote, words))
    done = subprocess.run([*shell.split(), "-c", script], capture_output=True, cwd=words_folder)
    assert done.stdout == b"".join(word.encode() + b"\0" for word in words)
    assert canaries(words_folder) == []


DIRECTIVES = ("#SBATCH --array=0-9", "#PBS -J 0-9", "#BSUB -J x[1-9]", "#FLUX: --cc=0-9")
MORE = ("lr", "stage", "stage link", "notify", "mail", "packages", "requirements", "wheels",
        "ship_secrets", "grid", "follow_links", "grid name", "hang", "proof", "binding",
        "preflight", "debug", "then", "then name")  # fmt: skip


def test_every_key_of_a_job_file_that_takes_text_is_tried() -> None:
    tried = {key for field in (*ALL, *MORE) for key in with_field(field, "x")}
    numbers = {"cpus_per_task", "local_disk", "chain", "relaunch", "at_once"}
    assert set(JobSpec.model_fields) - tried == {"exclusive", "hostfile", "keep_compiled", *numbers}


@pytest.mark.parametrize("field", (*ALL, *MORE))
@fuzzed(6)
@given(
    left=st.one_of(st.just(""), passable),
    end=st.sampled_from(["\n", "\n \t", "\n\n", "\u2028", "\u2029"]),
    directive=st.sampled_from(DIRECTIVES),
    right=passable,
)
def test_no_text_of_a_job_file_makes_a_directive(
    field: str, left: str, end: str, directive: str, right: str
) -> None:
    left = f"--x{left}" if field == "sbatch" else left
    try:
        spec = as_typed(with_field(field, left + end + directive + right))
        launch = compose(spec, LUMI, deepspeed_config="{}" if spec.deepspeed else None)
    except InputError:
        return  # no script is made of it
    plain = plain_script(launch, LUMI, "hello")
    for text in (*launch.texts.values(), plain):
        own = text.splitlines()
        given = [line for line in own if re.match(r"\s*#(?:SBATCH|PBS|BSUB|FLUX)", line)]
        assert given == own[1 : 1 + len(given)], f"{field}: {given}"
        assert not any("0-9" in line or "1-9" in line for line in given)


# -- single cases that fuzzing found


@pytest.mark.parametrize("size", ["²", "9" * 5000, "9" * 25, "\u0661", "1e3", ""])
def test_a_batch_that_is_no_plain_number_is_none(size: str) -> None:
    scale = {"scale": {"batch": {"arg": "--batch"}}}
    spec = parse_job(as_yaml(JOB | scale | {"args": ["--batch", size]}), "job.yaml")
    assert compose(spec, LUMI).global_batch is None


@pytest.mark.parametrize(
    "pattern", ["(a){99999999999999999999}", "(" * 3000, "(a", "a", "(a)(b)", "(?P<a>x)(?P=b)"]
)
def test_a_pattern_that_cannot_be_compiled_is_refused(pattern: str) -> None:
    with pytest.raises(InputError, match=r"job\.yaml:8: metrics: x: "):
        parse_job(as_yaml(with_field("metrics", pattern)), "job.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "{a:" * 5000,
        "{a:" + "[" * 5000,
        "{a: " + "9" * 5000 + "}",
        "{a: 1e400}",
        "[]",
        "",
        "\0",
        "{",
    ],
)
def test_a_deepspeed_configuration_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="DeepSpeed configuration"):
        deepspeed_batch.batch_of(deepspeed_batch.read_config(text, "ds.json"), 8, 1)


@pytest.mark.parametrize("size", [10**12 + 1, 0, -1, 1.5, True, [1], {"a": 1}])
def test_a_huge_batch_is_refused_at_once(size: object) -> None:
    with pytest.raises(InputError, match="train_batch_size"):
        deepspeed_batch.batch_of({"train_batch_size": size}, 8, 3)


def test_thousands_of_mistakes_are_reported_in_a_few_lines() -> None:
    text = "".join(f"key{index}: 1\n" for index in range(8000))
    with pytest.raises(InputError) as told:
        parse_job(text, "job.yaml")
    assert "8004 mistakes" in told.value.message and "7984 more" in told.value.message
    assert len(told.value.message.splitlines()) < 25


@pytest.mark.parametrize(
    "pattern",
    [
        f"[$(touch {CANARY})]",
        f"[`touch {CANARY}`]",
        f"[;touch {CANARY};]",
        "[a b]",
        "[!$x]",
        "[[:x:]]",
        f"*[>{CANARY}]",
        "[~]",
        "[\n]",
        '["]',
        "[#]",
    ],
)
def test_brackets_of_a_pattern_are_no_command(tmp_path: Path, pattern: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / pattern.replace("/", "_")).write_text("x")
    found = fetch(Local(), str(run), [pattern], tmp_path / "to")
    assert canaries(run) in ([], [run / pattern]) and not (run / CANARY).exists()
    assert [item.name for item in found.files] == [pattern]


def test_a_file_name_with_a_line_end_of_unicode_is_fetched(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    names = ["a\u2028b", "a\x85b", "a\x0bb", "a\\b", "a\nb", "a\x1cb", " a ", "-a"]
    for name in names:
        (run / name).write_text(name)
    found = fetch(Local(), str(run), ["*"], tmp_path / "to")
    assert {item.name for item in found.files} == set(names)
    assert all(item.path.read_text() == item.name for item in found.files)


@pytest.mark.parametrize(
    "words",
    [
        ("show", "{}"), ("history", "--filter", "{}"), ("history", "--site", "{}"), ("logs", "{}"),
        ("status", "--site", "{}"), ("cancel", "{}"), ("diff", "{}", "{}"), ("fetch", "{}", "{}"),
        ("resubmit", "{}", "--set", "name={}"), ("sites", "{}"), ("preview", "{}"), ("{}",),
    ],
)  # fmt: skip
@pytest.mark.parametrize("text", ["\udcff", "'; DROP TABLE runs; --", "%_\\", "\x1b[2J", ""])
def test_any_word_of_the_command_line_is_understood_or_refused(
    here: Here, words: tuple[str, ...], text: str
) -> None:
    done = here(*(word.replace("{}", text) for word in words))
    assert done.returncode in (0, 2), done.stderr
    assert "defect" not in done.stderr and "\x1b" not in done.stderr
