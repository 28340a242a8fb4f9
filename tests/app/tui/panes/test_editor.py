"""A job file that is edited in the editor of the person: a copy, and one sentence when it fails."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.tui.panes.compose.editor import edited
from lumitui.remote.site.errors import InputError, LumiError


def test_the_editor_changes_a_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Terminal:
        """Lends itself."""

        suspend = nullcontext

    app: Any = Terminal()
    program = tmp_path / "my editor.py"
    program.write_text("import sys; open(sys.argv[1], 'a').write('nodes: 2\\n')")
    monkeypatch.setenv("VISUAL", f"{sys.executable} '{program}'")
    assert edited(app, "name: x\n") == "name: x\nnodes: 2\n"
    program.write_text("raise SystemExit(3)")
    with pytest.raises(LumiError, match="exited with 3"):
        edited(app, "name: x\n")
    monkeypatch.setenv("VISUAL", "/nowhere/ed")
    with pytest.raises(InputError, match="cannot be started"):
        edited(app, "name: x\n")
    monkeypatch.setenv("VISUAL", "vi '")
    with pytest.raises(InputError, match="not a command"):
        edited(app, "name: x\n")
