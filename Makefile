# make demo    a real training on this machine, resubmitted at twice the nodes
# make test    the tests, with the mini cluster where it can run; make test-all adds the slow ones
# make chaos   1,000 broken sends on the mini cluster; N=50 SEED=7 for fewer, from that seed
# make picture  docs/architecture.svg, drawn from the imports
# make cluster-up SLURM=24    the mini cluster with Slurm 24.11, beside the other
PY := .venv/bin/python

.PHONY: demo test test-alone test-cluster test-slurm24 test-all check setup packages bench footprint chaos picture cluster-up cluster-down

setup:
	@.ci/setup

demo: setup
	@.venv/bin/lumitui demo

# What the tests need of Debian, installed before any test looks for it.
packages: setup
	-@tests/cluster/parts/packages.sh

# Jobs on the cluster mostly wait, so another process uses the second core; each prints when it ends.
test: setup packages
	@echo "test-cluster and test-alone, then test-slurm24; each prints when it ends"
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target --assume-old=setup --assume-old=packages \
	  test-cluster test-alone test-slurm24

test-cluster: setup packages
	@$(PY) -m pytest -m "cluster and not slow"

test-alone: setup packages
	@$(PY) -m pytest -m "not cluster and not slow"

# In a folder and on ports of its own, whatever the other cluster was given.
test-slurm24: setup packages
	@env -u ROOT -u SSH_PORT -u BASE SLURM=24 $(PY) -m pytest -m "both_slurms and cluster and not slow"

test-all: setup packages
	@$(PY) -m pytest

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	cd trainers && ../.venv/bin/mypy --strict .
	.venv/bin/lint-imports

bench: setup cluster-up
	@$(PY) -m tests.measure.bench

footprint: setup cluster-up
	@$(PY) -m tests.measure.footprint

chaos: setup cluster-up
	@$(PY) -m tests.measure.chaos --count $(or $(N),1000) $(if $(SEED),--seed $(SEED))

picture: setup
	@PYTHONPATH=src $(PY) -m tests.repository.picture

cluster-up: setup
	@tests/cluster/up

cluster-down:
	@tests/cluster/down
