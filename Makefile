# Needs Python 3.11 or newer and make. `.venv` is made on first use; a stamp per extra in it makes
# later runs fast, and is older than pyproject.toml or constraints.txt when these change.

VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
DEMO_ARGS ?=
JOBS ?= 2
EXAMPLES ?= 10000
CONSTRAINTS := constraints.txt

# Python versions beside that of .venv, and tests that meet every dependency: what `make pythons`
# and `make oldest` run.
PYTHONS := 3.12 3.13
PART := tests/release/test_metadata.py tests/test_package.py tests/test_light_start.py \
	tests/search_space tests/integrations/optuna/test_conformance.py \
	tests/integrations/optuna/test_sampler_studies.py tests/integrations/optuna/test_sampler_outcomes.py \
	tests/optimizer/test_optimizer.py \
	tests/surrogates/estimators tests/surrogates/mondrian_forest/test_conformance.py \
	tests/surrogates/partition_kernels/test_operator.py

# The first interpreter that runs (a shim may exist and not run) and is new enough.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
PIP_INSTALL = $(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS)

.PHONY: help demo test properties part pythons oldest engines bounds lint format wheel site clean distclean
.DELETE_ON_ERROR:

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.stamp-demo  ## tune a classifier on the digits data; results in demo-output/
	$(BIN)/python examples/demo.py $(DEMO_ARGS)

test: $(VENV)/.stamp-test $(VENV)/.stamp-ax  ## run the test suite (PYTEST_ARGS="tests/trees -k gaussian" for a part)
	$(BIN)/python -m pytest --verbosity=0 --numprocesses=$(JOBS) --dist=worksteal $(PYTEST_ARGS)

bounds: export NUMBA_BOUNDSCHECK := 1
bounds: $(VENV)/.stamp-test  ## run a part of the test suite with bounds checks in compiled code
	$(BIN)/python -m pytest --verbosity=0 --numprocesses=$(JOBS) \
		tests/optimizer/shared/test_interrupts.py tests/trees/test_undo.py \
		tests/trees/test_growth_validity.py tests/surrogates/estimators/test_locks.py

properties: export MONDRIAN_BO_EXAMPLES := $(EXAMPLES)
properties: $(VENV)/.stamp-test  ## run random sequences of calls, EXAMPLES=10000 of each kind
	$(BIN)/python -m pytest --verbosity=0 --numprocesses=$(JOBS) --timeout=0 tests/properties

part: $(VENV)/.stamp-suite
	$(BIN)/python -m pytest --verbosity=0 --numprocesses=$(JOBS) $(PART) $(PYTEST_ARGS)

pythons:  ## run a part of the test suite on other Python versions that are there, in .venv-3.12 and so on
	set -e; for version in $(PYTHONS); do \
		python=$$(sh tools/find_python.sh $$version) || { echo "Python $$version: left out"; continue; }; \
		$(MAKE) part VENV=.venv-$$version PYTHON=$$python; \
	done

oldest:  ## run a part of the test suite with the oldest dependencies that are declared, in .venv-oldest
	$(MAKE) part VENV=.venv-oldest CONSTRAINTS=oldest.txt

engines: $(VENV)/.stamp-test $(VENV)/.stamp-engines $(VENV)/.stamp-ray  ## run the tests that start storages and clusters
	$(BIN)/python -m pytest --verbosity=0 -rs tests/integrations/engines

lint: $(VENV)/.stamp-lint  ## ruff (lint and format) and mypy in strict mode
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.stamp-lint  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(VENV)/.stamp-lint  ## build wheel and sdist, check them, install and import them in a clean environment
	$(BIN)/python tools/check_wheel.py

site: $(VENV)/.stamp-docs  ## build the documentation to site/, without warnings
	rm -rf site docs/generated
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --jobs $(JOBS) -d site/.doctrees docs site
	@echo "The site is in site/index.html"

clean:  ## remove what was built, caches and the output of examples (benchmark results stay)
	rm -rf build dist site docs/generated *.egg-info demo-output ax-output examples-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./.git -prune -o -path './.venv*' -prune -o -name __pycache__ -type d -print0 \
		| xargs -0 rm -rf

distclean: clean  ## clean, and remove .venv
	rm -rf $(VENV)

$(VENV)/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (PYTHON=... names one)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.stamp-%: $(VENV)/pyvenv.cfg pyproject.toml $(CONSTRAINTS)
	@echo "Installing mondrian-bo and its '$*' requirements into $(VENV) (a minute or two)"
	$(PIP_INSTALL) --editable '.[$*]'
	@touch $@
