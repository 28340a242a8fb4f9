"""`venv:` as a person writes it, and requirements as pip reads them."""

import pytest

from lumitui.app.job.fields.venv_field import (
    VenvChoice,
    check_requirement,
    included,
    lines_of,
    package_of,
)
from lumitui.app.job.spec import parse_job
from lumitui.remote.site.errors import InputError

JOB = "name: a\nsite: lumi\npartition: small-g\ntime: '1:00:00'\nscript: a.py\nvenv: "


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("requirements.txt", VenvChoice(requirements="requirements.txt")),
        ("[requirements.txt]", VenvChoice(requirements="requirements.txt")),
        ("einops", VenvChoice(packages=("einops",))),
        ("[einops==0.8, tqdm]", VenvChoice(packages=("einops==0.8", "tqdm"))),
        ("{packages: [a], wheels: wheels}", VenvChoice(packages=("a",), wheels="wheels")),
        ("{packages: [a], wheels: /gpfs/w}", VenvChoice(packages=("a",), wheels="/gpfs/w")),
    ],
)
def test_it_has_three_forms(text: str, meant: VenvChoice) -> None:
    assert parse_job(JOB + text, "job").venv == meant


@pytest.mark.parametrize(
    "text", ["{requirements: ../r.txt}", "{wheels: ../w}", "{wheels: 'a b'}", "{wheels: '/'}"]
)
def test_a_path_outside_the_project_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="venv"):
        parse_job(JOB + text, "job")


def test_a_file_is_read_as_pip_reads_it() -> None:
    text = (
        "# all of it\n\ntorch>=2 # not older\nlong \\\n  >=1\n-r more.txt\nx @ https://h/x#egg=x\n"
    )
    lines = list(lines_of(text))
    assert lines == ["torch>=2", "long    >=1", "-r more.txt", "x @ https://h/x#egg=x"]
    assert [included(line) for line in lines] == [None, None, "more.txt", None]
    assert list(map(package_of, lines)) == ["torch", "long", "", "x"]
    assert package_of("Ruamel.Yaml_clib[x]>1") == "ruamel-yaml-clib"


@pytest.mark.parametrize(
    "line",
    [
        "einops",
        "x @ https://h/x-1-py3-none-any.whl",
        "a[b]==1; python_version>'3'",
        "--index-url https://h",
    ],
)
def test_what_an_environment_can_have_is_accepted(line: str) -> None:
    check_requirement(line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-e .", "is a path"),
        (".", "is a path"),
        ("./pkg", "is a path"),
        ("../other", "is a path"),
        ("wheels/a-1-py3-none-any.whl", "is a path"),
        ("a @ file:///x", "is a path"),
        ("--index-url https://me:pass@h/simple", "has a password"),
        ("-c constraints.txt", "is unsupported"),
        ("--target=/", "is unsupported"),
    ],
)
def test_what_cannot_be_shared_is_refused(line: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        check_requirement(line)
    assert refused.value.hint
