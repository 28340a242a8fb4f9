"""JupyterLab in the job. Its token is in a file in the run's folder that only you can read.

No command line, script or log has the token. Notebooks are kept in the run's folder: the code
beside this file, which they can import, is shared by all runs that were sent with it. This file is
not called notebook.py: Jupyter would import it in place of its package of that name.
"""

import argparse
import os
import secrets
import shutil
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=8888)
port = parser.parse_args().port
run, code = Path(os.environ["RUN_DIR"]), Path(__file__).resolve().parent

os.umask(0o077)
token = run / "jupyter_token"
if not token.exists():  # a requeued job keeps it
    token.write_text(secrets.token_hex(24))
notebooks = run / "notebooks"
notebooks.mkdir(exist_ok=True)
for source in code.glob("*.ipynb"):
    if not (notebooks / source.name).exists():
        shutil.copyfile(source, notebooks / source.name)

os.environ.pop("JUPYTER_TOKEN", None)  # it would override the file
os.environ["JUPYTER_TOKEN_FILE"] = str(token)
os.environ["JUPYTER_RUNTIME_DIR"] = str(run / "jupyter")  # it names the token in files
path = [str(code), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
print(f"Open it with: lumitui forward {run.name} {port} --open", flush=True)
print(f"Its token: lumitui shell {run.name} -- cat jupyter_token", flush=True)
arguments = [
    "--no-browser",
    "--ip=0.0.0.0",  # `forward` comes from the login node
    f"--port={port}",
    "--ServerApp.port_retries=0",  # another port would not be found
    f"--ServerApp.root_dir={notebooks}",
    "--MappingKernelManager.cull_idle_timeout=3600",
    "--ServerApp.shutdown_no_activity_timeout=3600",
]
os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *arguments])
