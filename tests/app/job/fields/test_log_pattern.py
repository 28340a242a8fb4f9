"""A pattern of `metrics:` is compiled only when that takes a moment."""

import pytest

from lumitui.app.job.fields.text_fields import check_log_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "(((a{1000}){1000}){1000})",
        "(?:(?:(?:(a){1000}){1000}){1000})",
        "(a{99999999})",
        "(" + "a{9}" * 240 + "){9999}",
        "([](]{1000}(?:b{1000}){1000})",
        r"((\)a{1000}){1000})",
        "(?V1)([[a])]{1000}(?:b{1000}){1000})",
        "(?x)(a #(\n{1000} (?:b{1000}){1000})",
        "(a {1000} {1000} {1000})",
        "(" + "a" * 1000 + ")",
    ],
)
def test_what_would_compile_for_hours_is_refused_at_once(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"copies|characters"):
        check_log_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"loss[ =:]+([0-9.]+(?:e[+-]?\d{1,3})?)",
        r"^\[\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\] .{0,200}? step_time: (\d{1,9}\.\d{1,9})",
        r"(?i)epoch\s{1,8}\d{1,6}\s.{1,500}acc\s(\d{1,3}\.\d{1,4})",
        r"(\p{N}{1,20})",
        r"([^\](]{1,1000})",
        r"(a{2,})",
    ],
)
def test_what_people_write_is_taken(pattern: str) -> None:
    check_log_pattern(pattern)
