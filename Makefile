# make demo     train on this machine, then again on twice the nodes
# make test     run the tests, on the mini cluster too where it can run; make test-all adds the slow ones;
#               CHECKS=1 runs check and lowest beside them: .ci/run is that
# make quick    run the tests of what has changed since the last commit, in about a minute
# make check    ruff, mypy --strict, the import contracts, known advisories where they can be looked up
# make lowest   some tests on the lowest versions that pyproject.toml allows
# make lock     write the lists of versions and hashes again (needs uv); UPGRADE=--upgrade takes newer versions
# make bench-tui  measure the TUI and the verbs beside bare programs
# make bench-trainers  measure the trainers on the CPU: loop, wire, saves, data formats; exit 1 over a limit
# make bench-gpu  measure the trainers on a GPU, some 30 minutes; PARTS=gemm measures one part
# make release-check  build wheel and sdist twice with equal bytes, install the wheel, start the tour, print the hashes
# make sbom     write build/lumitui.cdx.json, a CycloneDX list of what requirements.txt installs
# make chaos    break 1,000 sends on the mini cluster; N=50 SEED=7 breaks 50, drawn from seed 7
# make frozen   renew the hashes of what users see and print what changed; KINDS="scripts why" renews those
# make systems  run each job script of the documents on a mini cluster of its site's shape; docs/systems.md
# make docs     build the documentation's site into build/site; a broken link or anchor fails
# make reference  write docs/{commands,job_file,rules}.md, the causes of docs/why.md and docs/lumitui.1 from the program
# make screenshots  draw every screen to build/screens, and the picture of docs/first_job.md
# make diagrams     draw the small pictures of the documents, in light and in dark
# make recording    draw the tour as an animated picture, docs/pictures/tour.svg
# make cluster-up SLURM=26    start the mini cluster with Slurm 26.05 beside the one with 22.05; 24: 24.11
PY := .venv/bin/python
# Each of some 1,000 processes that the tests start would compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo exam quick release-check compiled test test-alone slurm26-and-checks test-cluster test-slurm24 test-slurm26 test-all check audit lowest lock sbom setup packages bench bench-history bench-tui bench-trainers bench-gpu footprint chaos frozen systems docs reference screenshots diagrams recording cluster-up cluster-down

setup:
	@.ci/setup

demo: setup
	@.venv/bin/lumitui demo

# Installs the Debian packages that the tests need, before any test looks for them.
packages:
	-@tests/cluster/parts/packages.sh

# Python compiles each test module once, not in each of seven processes at the same time.
compiled: setup
	@[ -d tests/__pycache__ ] || $(PY) -m pytest --collect-only --quiet >/dev/null 2>&1 || true

# Jobs on the clusters mostly wait, so all parts run at once; each prints when it ends.
AT_ONCE = $(MAKE) --no-print-directory --keep-going --jobs=3 --output-sync=target --assume-old=setup --assume-old=packages
# One after the other: a place that another part leaves would else start the second beside the first.
IN_TURN = $(MAKE) --no-print-directory --keep-going --jobs=1
# test-alone takes longest, so that it starts at once. CHECKS=1 runs the checks behind the shortest part: .ci/run does.
PARTS_OF_TEST := test-cluster test-alone $(if $(CHECKS),slurm26-and-checks,test-slurm26)
test: setup packages compiled
	@echo "$(PARTS_OF_TEST); each prints when it ends"
	@$(AT_ONCE) $(PARTS_OF_TEST)

quick: setup
	@$(PY) -m tests.repository.quick

release-check: setup
	@$(PY) -m tests.repository.supply.release

slurm26-and-checks:
	@$(IN_TURN) test-slurm26 check lowest

# Each process has a cluster of its own. The order is that of tests/conftest.py.
test-cluster: setup packages
	@.ci/tests cluster -m "cluster and not slow" --numprocesses=2 --dist=loadfile --no-loadscope-reorder

# Twice as many as cores: half of a test's time is the wait for another process.
test-alone: setup packages
	@.ci/tests alone -m "not cluster and not slow" --numprocesses=4 --dist=loadfile

# These clusters have folders and ports of their own: the variables that move the others do not count here.
NEWER := env -u ROOT -u SSH_PORT -u BASE -u COPY
MARKED = $$(grep -rlw --include='test_*.py' both_slurms tests)
test-slurm24 test-slurm26: setup packages
	@$(NEWER) SLURM=$(@:test-slurm%=%) .ci/tests $(@:test-%=%) -m "both_slurms and cluster and not slow" $(MARKED)

test-all: setup packages
	@$(PY) -m pytest
	@$(NEWER) SLURM=24 $(PY) -m pytest -m "both_slurms and cluster"
	@$(NEWER) SLURM=26 $(PY) -m pytest -m "both_slurms and cluster"

# Hours on a small machine. A failed row does not keep the others from running.
systems: setup packages
	-@$(PY) -m pytest tests/end_to_end/systems
	@$(PY) -m tests.support.systems.page

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	cd trainers && ../.venv/bin/mypy --strict --python-version 3.10 . ../templates/examples/lumitui_run.py
	.venv/bin/lint-imports
	@$(PY) -m tests.repository.supply.audit

audit: setup
	@$(PY) -m tests.repository.supply.audit

lowest: setup
	@.ci/lowest

lock:
	@.ci/lock $(UPGRADE)

sbom: setup
	@command -v cyclonedx-py >/dev/null || { echo "cyclonedx-py is missing: pipx install cyclonedx-bom" >&2; exit 1; }
	@.venv/bin/python -m venv --clear --without-pip build/parts
	@.venv/bin/python -m pip --python build/parts/bin/python install --quiet --require-hashes --no-deps -r requirements.txt
	@cyclonedx-py environment --output-reproducible --pyproject pyproject.toml build/parts/bin/python >build/lumitui.cdx.json

# An environment of its own: nothing of lumitui needs the site's generator.
docs: setup
	@[ -x build/docs-venv/bin/zensical ] || $(PY) -m venv --without-pip build/docs-venv
	@$(PY) -m pip --python build/docs-venv/bin/python install --quiet --disable-pip-version-check --group docs
	@build/docs-venv/bin/zensical build --strict --clean
	@echo "build/site/index.html"

bench: bench-history bench-tui setup cluster-up
	@$(PY) -m tests.measure.bench

# HALF=--held-out scores the half that no rule was tuned on.
exam: setup
	@$(PY) -m tests.exam.score $(HALF)
	@$(PY) -m tests.exam.score_jobs $(HALF)

bench-history: setup
	@$(PY) -m tests.measure.bench_history

# RUNS=1000 SECONDS=5 take less time.
bench-tui: setup
	@$(PY) -m tests.measure.bench_tui

# SECTIONS=wire measures one alone; JSON=1 prints one object.
bench-trainers: setup
	@$(PY) -m tests.measure.bench_trainers $(SECTIONS) $(if $(JSON),--json)

# Needs no setup: PYTHON is one with a PyTorch for the GPU.
bench-gpu:
	@$(or $(PYTHON),python3) -m tests.measure.bench_gpu $(PARTS)

footprint: setup cluster-up
	@$(PY) -m tests.measure.footprint

chaos: setup cluster-up
	@$(PY) -m tests.measure.chaos --count $(or $(N),1000) $(if $(SEED),--seed $(SEED))

frozen: setup
	@PYTHONPATH=src:. $(PY) -m tests.frozen $(KINDS)

reference: setup
	@PYTHONPATH=src:. $(PY) -m tests.repository.reference

screenshots: setup
	@PYTHONPATH=src $(PY) -m tests.measure.pictures.screenshots

diagrams: setup
	@PYTHONPATH=src:. $(PY) -m tests.measure.pictures.diagrams

recording: setup
	@PYTHONPATH=src $(PY) -m tests.measure.pictures.recording

cluster-up: setup
	@tests/cluster/up

cluster-down:
	@tests/cluster/down
