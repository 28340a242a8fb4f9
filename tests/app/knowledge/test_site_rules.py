"""The rules in a site's profile: what each condition lets through, over the neutral job."""

import pytest
from pydantic import ValidationError

from lumitui.app.knowledge.rules.site_rules import FIELDS, findings
from lumitui.app.knowledge.script_job import (
    Command,
    CommandOptions,
    CommandWord,
    ContainerCall,
    JobStep,
    Option,
    Resources,
    ScriptJob,
    Variable,
)
from lumitui.remote.site.profile import RULE_FIELDS, Site, SiteRule
from lumitui.remote.site.source_position import Position
from tests.support.jobs.sites.site_jobs import BUILT_IN_SITES, site
from tests.support.rules.lint_cases import tried_rules

IMAGE = "/appl/local/images/torch-u24r70.sif"


def _rule(**changes: object) -> SiteRule:
    given = {"id": "r", "severity": "warning", "field": "env.X", "matches": "^1$"}
    given |= {"message": "X is {value}.", "do": "Remove it.", "source": "a test"}
    return SiteRule.model_validate(given | changes)


def _lumi(rule: SiteRule) -> Site:
    return site("lumi").model_copy(update={"rules": (rule,)})


def _job(**changes: object) -> ScriptJob:
    image = ContainerCall("singularity", "run", CommandWord(IMAGE))
    step = JobStep(
        srun=CommandOptions(),
        container=image,
        launcher="torchrun",
        arguments=(CommandWord("--lr"),),
    )
    job = ScriptJob(
        "script",
        options=CommandOptions((Option("partition", "small-g"), Option("mail-type", "END"))),
        resources=Resources(partition="small-g", nodes=2),
        variables=(Variable("X", "1", Position(7, 8, 7, 11)),),
        steps=(step,),
        modules=("cuda",),
    )
    return ScriptJob(**{**vars(job), **changes}) if changes else job


def test_a_value_is_found_at_its_place_and_said() -> None:
    (found,) = findings(_job(), _lumi(_rule()))
    assert (found.rule, found.message, found.at.line) == ("r", "X is 1.", 7)


@pytest.mark.parametrize(
    "wanted",
    [
        {"images": "u24r70"},
        {"launchers": ["torchrun"]},
        {"allocation": "shared"},
        {"nodes_from": 2},
        {"when": {"module": "^cuda"}},
        {"when": {"env.Y": "absent", "sbatch": "^--mail-type=END$"}},
        {"when": {"container.call": "^singularity run$", "partition": "-g$", "args": "^--lr$"}},
    ],
)
@pytest.mark.parametrize("holds", [True, False])
def test_each_condition_lets_the_rule_fire_or_not(wanted: dict[str, object], holds: bool) -> None:
    other = _job(
        options=CommandOptions(),
        resources=Resources(partition="standard-g"),
        modules=(),
        steps=(),
        variables=(*_job().variables, Variable("Y", "2")),
    )
    found = list(findings(_job() if holds else other, _lumi(_rule(**wanted))))
    assert len(found) == holds


def test_absent_means_that_no_shell_and_no_option_of_the_container_sets_it() -> None:
    rule = _lumi(_rule(field="env.Y", matches=None, absent=True, message="Y is not set."))
    assert len(list(findings(_job(), rule))) == 1
    inside = _job(variables=(Variable("SINGULARITYENV_Y", "1"),))
    assert not list(findings(inside, rule))
    call = ContainerCall(
        "singularity", "run", CommandWord(IMAGE), CommandOptions((Option("env", "Y=1"),))
    )
    assert not list(findings(_job(steps=(JobStep(container=call),)), rule))


def test_absent_is_not_said_of_a_job_that_reads_what_nobody_knows() -> None:
    rule = _lumi(_rule(field="env.Y", matches=None, absent=True, message="Y is not set."))
    reads = Command("source", (CommandWord("./settings.sh"),))
    assert not list(findings(_job(commands=(reads,)), rule))
    harmless = Command("source", (CommandWord("env/bin/activate"),))
    assert len(list(findings(_job(commands=(harmless,)), rule))) == 1


def test_a_cure_is_an_edit_of_the_value() -> None:
    (found,) = findings(_job(), _lumi(_rule(cure="0")))
    assert found.fix is not None
    assert (found.fix.value, found.fix.at) == ("X=0", Position(7, 8, 7, 11))


@pytest.mark.parametrize(
    "wrong", [{"matches": None}, {"absent": True}, {"field": "sbatch", "cure": "x"}]
)
def test_a_rule_asks_one_thing(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        _rule(**wrong)


@pytest.mark.parametrize("wrong", [{"field": "partitions"}, {"when": {"envX": "1"}}])
def test_an_unknown_field_is_refused_with_those_there_are(wrong: dict[str, object]) -> None:
    with pytest.raises(
        ValidationError,
        match=r"unknown field .* use env\.NAME or one of .* lists options as `--name=value`",
    ):
        _rule(**wrong)


def test_each_field_that_a_profile_may_name_can_be_read() -> None:
    assert set(RULE_FIELDS) == set(FIELDS)


def test_every_rule_of_a_site_has_a_case() -> None:
    rules = {rule.id for name in BUILT_IN_SITES.names() for rule in site(name).rules}
    assert rules <= tried_rules()
