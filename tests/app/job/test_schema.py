"""The JSON Schema of job files, which editors show: each key explained, each example right."""

import json
import re
from typing import Any

import pytest
import yaml

from lumitui.app.job.json_schema import described_schema
from lumitui.app.job.spec import MOST_ARGUMENTS, JobSpec, changed, parse_job
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from tests.support.program.command_line import Here

BASE = {
    "name": "n", "site": "laptop", "partition": "local", "time": "01:00:00", "script": "train.py",
}  # fmt: skip
SCHEMA = described_schema(JobSpec)
KEYS = [
    pytest.param(name, words.get("description", ""), id=f"{title}.{name}")
    for title, node in [("JobSpec", SCHEMA), *SCHEMA["$defs"].items()]
    for name, words in node["properties"].items()
]


@pytest.mark.parametrize(("key", "words"), KEYS)
def test_each_key_has_a_description_whose_examples_are_right_job_files(
    key: str, words: str
) -> None:
    assert re.match("[A-Z].*[.]$", words) or words.startswith("sbatch's "), words
    examples = re.findall(r"`([a-z_]+: [^`]+)`", words)
    assert any(re.search(rf"\b{key}: ", one) for one in examples), f"no example: {words}"
    for example in examples:
        ((name, value),) = yaml.load(example, yaml.BaseLoader).items()
        job = {**BASE, name: value}
        if name == "trainer":
            del job["script"]
        assert getattr(parse_job(yaml.safe_dump(job), "job.yaml"), name) is not None


def values_fit(schema: dict[str, Any], value: object) -> bool:
    """Whether a value is of a kind that the schema names; only kinds are looked at."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].split("/")[-1]]
    if "anyOf" in schema:
        return any(values_fit(one, value) for one in schema["anyOf"])
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    match value:
        case dict():
            keys, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
            return "object" in kinds and all(
                values_fit(keys.get(key, rest), one)
                for key, one in value.items()
                if key in keys or isinstance(rest, dict)
            )
        case list():
            items = schema.get("items", {})
            return "array" in kinds and all(values_fit(items, one) for one in value)
        case bool():
            return "boolean" in kinds
        case int() | float():
            return "number" in kinds or ("integer" in kinds and isinstance(value, int))
        case _:
            return "string" in kinds


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("stage", {"DATA": "~/mnist", "MODEL": {"path": "m.bin"}}),
        ("venv", "requirements.txt"),
        ("venv", ["einops"]),
        ("venv", {"packages": ["einops"]}),
        ("args", ["--lr", 0.1, "--epochs", 3, True]),
        ("env", {"OMP_NUM_THREADS": 7}),
        ("grid", {"lr": [1e-3, 3e-4]}),
    ],
)
def test_what_a_person_may_write_is_no_mistake_in_an_editor(key: str, value: object) -> None:
    assert values_fit(SCHEMA["properties"][key], value)
    assert getattr(parse_job(yaml.safe_dump({**BASE, key: value}), "job.yaml"), key)


def test_an_editor_offers_a_following_job_the_keys_that_it_may_have() -> None:
    (follower,) = SCHEMA["properties"]["then"]["patternProperties"].values()
    names = follower["propertyNames"]["enum"]
    assert {"script", "nodes", "when"} < set(names) and not {"name", "site", "then"} & set(names)
    assert follower["properties"]["time"] == {"$ref": "#/properties/time"}


def test_the_verb_prints_the_descriptions_of_jobs_and_sites(here: Here) -> None:
    job = json.loads(here("schema").stdout)
    assert job == SCHEMA
    site = json.loads(here("schema", "site").stdout)
    assert (
        "Name or ssh_config alias" in site["$defs"]["Hosts"]["properties"]["login"]["description"]
    )


def test_each_key_of_a_profile_has_a_description() -> None:
    schema = described_schema(Site)
    nodes = {"Site": schema, **schema["$defs"]}
    keys = {
        f"{title}.{name}": words.get("description", "")
        for title, node in nodes.items()
        for name, words in node["properties"].items()
    }
    assert len(keys) > 180
    assert [key for key, words in keys.items() if not words] == []


def test_a_base_class_gives_its_descriptions_too() -> None:
    class Below(JobSpec):
        more: int = 1
        """More of it."""

    schema = described_schema(Below)
    assert schema["properties"]["more"]["description"] == "More of it."
    assert schema["properties"]["nodes"] == SCHEMA["properties"]["nodes"]


JOB = (
    'name: x\nsite: laptop\npartition: local\ntime: "00:05:00"\nscript: train.py\nargs: [{args}]\n'
)


def job(count: int) -> JobSpec:
    return parse_job(JOB.format(args=",".join(["a"] * count)), "job.yaml")


def test_a_list_of_arguments_that_belongs_into_a_file_is_refused() -> None:
    assert len(job(MOST_ARGUMENTS).args) == MOST_ARGUMENTS
    with pytest.raises(
        InputError, match=r"job\.yaml:6: args: 5,001 arguments exceed the limit of 5,000"
    ):
        job(MOST_ARGUMENTS + 1)
    with pytest.raises(InputError, match="100,000 arguments"):
        changed(job(1), {"args": ["a"] * 100_000}, "--set")
