"""Names of files that hold secrets, and names that only look like it."""

import pytest

from lumitui.remote.source.secret_names import secret_name
from tests.support.files.secrets import HARMLESS_NAMES, SECRET_NAMES


@pytest.mark.parametrize("path", SECRET_NAMES)
def test_a_name_that_means_a_secret_is_known_anywhere_and_in_any_case(path: str) -> None:
    for place in (path, f"deep/er/{path}", path.upper()):
        rule = secret_name(place)
        assert rule is not None and rule.what and rule.source, place


@pytest.mark.parametrize("path", HARMLESS_NAMES)
def test_public_keys_templates_and_code_are_no_secrets(path: str) -> None:
    for place in (path, f"deep/er/{path}"):
        rule = secret_name(place)
        assert rule is None or not (rule.holds is None or rule.holds(b"")), place
