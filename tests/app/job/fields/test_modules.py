"""`modules:` takes a pasted line of the shell."""

from lumitui.app.job.fields.text_fields import module_names


def test_a_pasted_line_loads_modules_and_no_other_command_is_one() -> None:
    assert module_names("ml A/1 B/2") == module_names(["module load A/1", "ml load B/2"])
    for line in ("ml unload A", "ml -q purge", "ml purge", "ml reset", "ml spider A"):
        assert module_names(line) == [line], "not a module: the form refuses it"
