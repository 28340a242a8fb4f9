"""A launch by Hydra ends after a rank failed, even when its mpirun does not, like the stub here."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from lumitui.app.launch.compose import compose, plain_script
from lumitui.remote.site.container import Mpi
from tests.support.jobs.sites.lumi_job import LUMI, job

STUBS = {
    # It starts one rank and, if it HANGS, waits for the others for ever.
    "mpirun": """\
#!/bin/bash
until [[ $1 == bash ]]; do shift; done
PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2 "$@"
ended=$?
[[ -z $HANGS ]] || /bin/sleep 300
exit "$ended"
""",
    "sleep": '#!/bin/bash\nexec /bin/sleep "0.$1"\n',
    "taskset": '#!/bin/bash\nshift\nexec "$@"\n',
}

ENDED = re.compile(r"\b(Killed|Terminated)\b")


@pytest.mark.parametrize(("hangs", "fails"), [(True, True), (False, True), (False, False)])
def test_an_mpirun_that_waits_for_ever_after_a_failed_rank_is_ended(
    hangs: bool, fails: bool, tmp_path: Path
) -> None:
    for name, text in STUBS.items():
        stub = tmp_path / name
        stub.write_text(text)
        stub.chmod(0o755)
    site = LUMI.model_copy(update={"mpi": Mpi(kind="hydra"), "default_container": None})
    script = plain_script(compose(job(launcher="mpirun", nodes=2), site), site, "t")
    launch = script[script.index("set -o pipefail") :]
    program = "false" if fails else "true"
    launch = launch.replace('python3 "$RUN_DIR"/code/train.py', program)
    environ = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "RUN_DIR": str(tmp_path),
        "HANGS": "yes" if hangs else "",
    }
    ended = subprocess.run(
        ["bash", "-c", launch], env=environ, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode != 0) == fails
    # Nobody hears of the watch and its end; bash says of the others how they ended.
    said = ["lumitui: rank 0 ended with 1"] if fails else []
    lines = ended.stdout.splitlines()
    assert [line for line in lines if not ENDED.search(line)] == said and not ended.stderr
