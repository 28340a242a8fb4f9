"""`venv:` of a job file: packages, requirements and lists of uv."""

import pytest

from lumitui.app.job.fields.uv_lock import (
    holds_on_linux,
    lock_requirements,
    project_requirements,
    python_bound,
)
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
        ("--index-url https://me:pass@h/simple", "contains a password"),
        ("-c constraints.txt", "is unsupported"),
        ("--target=/", "is unsupported"),
    ],
)
def test_what_cannot_be_shared_is_refused(line: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        check_requirement(line)
    assert refused.value.hint


A, B, C, D = (letter * 64 for letter in "abcd")


def wheel(name: str, digest: str, tag: str = "py3-none-any") -> str:
    url = f"https://files.example/{name}-{tag}.whl"
    return f'{{ url = "{url}", hash = "sha256:{digest}", size = 1 }}'


def package(name: str, version: str, *wheels: str, more: str = "", source: str = "") -> str:
    source = source or 'registry = "https://index.example/simple"'
    listed = ", ".join(wheels or (wheel(name, A),))
    return (
        f'[[package]]\nname = "{name}"\nversion = "{version}"\nsource = {{ {source} }}\n{more}\n'
        f"wheels = [{listed}]\n"
    )


def lock(*packages: str, needs: str, head: str = "version = 1") -> str:
    project = '[[package]]\nname = "demo"\nversion = "0.1"\nsource = { virtual = "." }\n'
    return f'{head}\nrequires-python = ">=3.10"\n{project}dependencies = [{needs}]\n' + "".join(
        packages
    )


FORK = "resolution-markers = [\"python_full_version < '3.11'\"]\n"
OLD = "python_full_version < '3.11'"


def test_each_version_has_the_hashes_of_its_files_for_linux() -> None:
    files = [wheel("einops", B), wheel("einops", C, "cp311-cp311-win_amd64"),
             wheel("einops", D, "cp311-cp311-manylinux2014_x86_64")]  # fmt: skip
    text = lock(package("einops", "0.8.1", *files), needs='{ name = "einops" }')
    assert lock_requirements(text, ()) == (f"einops==0.8.1 --hash=sha256:{B} --hash=sha256:{D}",)


def test_what_is_for_another_system_or_the_images_is_left_out_with_what_it_needs() -> None:
    text = lock(
        package("torch", "2.9.0", more='dependencies = [{ name = "nvidia-nccl-cu12" }]'),
        package("nvidia-nccl-cu12", "2.27"),
        package("pywin32", "312", more='dependencies = [{ name = "only-windows" }]'),
        package("only-windows", "1.0"),
        package("tqdm", "4.67.1"),
        needs='{ name = "torch" }, { name = "tqdm" }, '
        '{ name = "pywin32", marker = "sys_platform == \'win32\'" }',
    )
    assert [line.split()[0] for line in lock_requirements(text, ("torch",))] == ["tqdm==4.67.1"]
    assert len(lock_requirements(text, ())) == 3


def test_versions_for_some_pythons_alone_and_what_they_need_have_markers() -> None:
    text = lock(
        package("rich", "13", more=f'{FORK}dependencies = [{{ name = "tomli" }}]'),
        package("rich", "15", more=FORK.replace("<", ">=")),
        package("tomli", "2.0"),
        needs=f'{{ name = "rich", version = "13", marker = "{OLD}" }}, '
        '{ name = "rich", version = "15", marker = "python_full_version >= \'3.11\'" }',
    )
    first, second, tomli = (line.partition(" --hash")[0] for line in lock_requirements(text, ()))
    assert first == f"rich==13 ; ({OLD})"
    assert second == "rich==15 ; (python_full_version >= '3.11')"
    assert tomli == f"tomli==2.0 ; ({OLD})"


def test_extras_and_other_indexes_are_kept() -> None:
    extra = '[package.optional-dependencies]\nhttp2 = [{ name = "h2" }]'
    text = lock(
        package("httpx", "1") + extra + "\n",
        package("h2", "4", source='registry = "https://other.example/simple"'),
        package("unused", "1"),
        package("tqdm", "1"),
        needs='{ name = "httpx", extra = ["http2"] }, { name = "tqdm" }',
    )
    lines = lock_requirements(text, ())
    assert lines[0] == "--extra-index-url https://other.example/simple"
    assert [line.split()[0] for line in lines[1:]] == ["h2==4", "httpx==1", "tqdm==1"]
    assert python_bound(text) == ">=3.10"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version = 2", "not a version 1 uv.lock"),
        ("version = 1", "it has no project"),
        ("version = ", "Invalid value"),
        (lock(package("x", "1", source='git = "https://x.example/x"'), needs='{ name = "x" }'),
         "x does not come from a package index"),
        (lock(package("x", "1", source='registry = "https://a b"'), needs='{ name = "x" }'),
         "x does not come from a package index"),
        (lock(package("x", "1", wheel("x", "short")), needs='{ name = "x" }'), "no SHA-256"),
        (lock(package("x", "1; os", wheel("x", A)), needs='{ name = "x" }'), "x has no version"),
    ],
)  # fmt: skip
def test_a_lock_that_pip_could_not_verify_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        lock_requirements(text, ())


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ("", True),
        ("sys_platform == 'linux'", True),
        ("sys_platform == 'win32' and python_version >= '3.9'", False),
        ("sys_platform != 'win32' or python_version >= '3.9'", True),
        ("(os_name == 'nt' or python_version < '3.9') and sys_platform == 'linux'", None),
        ("platform_machine == 'aarch64'", None),
        ("python_version not in '3.9'", None),
        ("((((", None),
        ("sys_platform ==", None),
        ("\x00", None),
    ],
)
def test_a_marker_on_linux(marker: str, holds: bool | None) -> None:
    assert holds_on_linux(marker) is holds


def test_a_project_lists_its_dependencies() -> None:
    text = '[project]\nrequires-python = ">=3.11"\ndependencies = ["tqdm>=4", "torch>=2"]\n'
    assert project_requirements(text, ("torch",)) == ("tqdm>=4",)
    assert python_bound(text) == ">=3.11"
    with pytest.raises(ValueError, match="dynamic"):
        project_requirements('[project]\ndynamic = ["dependencies"]', ())
    with pytest.raises(ValueError, match="no `dependencies` list"):
        project_requirements('[project]\ndependencies = "tqdm"', ())
    with pytest.raises(ValueError, match="only uv knows where tqdm comes from"):
        project_requirements(text + '[tool.uv.sources]\ntqdm = { path = "../tqdm" }\n', ())
