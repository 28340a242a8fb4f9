# make demo    a real training on this machine, resubmitted at twice the nodes
# make test    the tests, with the mini cluster where it can run; make test-all adds the slow ones
# make chaos   1,000 broken sends on the mini cluster; N=50 SEED=7 for fewer, from that seed
PY := .venv/bin/python

.PHONY: demo test test-all check setup bench footprint chaos cluster-up cluster-down

setup:
	@.ci/setup

demo: setup
	@.venv/bin/lumitui demo

test: setup
	@$(PY) -m pytest -m "not slow"

test-all: setup
	@$(PY) -m pytest

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	cd trainers && ../.venv/bin/mypy --strict .
	.venv/bin/lint-imports

bench: setup cluster-up
	@$(PY) -m tests.bench

footprint: setup cluster-up
	@$(PY) -m tests.footprint

chaos: setup cluster-up
	@$(PY) -m tests.chaos --count $(or $(N),1000) $(if $(SEED),--seed $(SEED))

cluster-up: setup
	@tests/cluster/up

cluster-down:
	@tests/cluster/down
