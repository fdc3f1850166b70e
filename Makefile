# make demo      identify the friction of a measured lead-screw drive and write an HTML report
# make test      style, types and tests, but for those that are exhaustive
# make test-all  these too, and the documentation site
# make newest    try README's commands and every transformation on the newest Python and packages, in .venv-newest
# make oldest    the same on the oldest that pyproject.toml allows, in .venv-oldest
# make cases     the small inputs that failed once, in the folder that FRICTAX_CASES names
# make docs      the documentation site, build/docs/index.html, with its notebooks run and its links checked
# make dist      the wheel and the source, in dist/, as an index would take them
# All set up their environment themselves. Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
WORKERS ?= auto
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo style types test quick durations test-slow test-all newest oldest cases docs dist lint format bench clean

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -9

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "frictax needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || echo missing). Name a newer one: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version 2>&1)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing frictax into $(VENV)"
	@$(PIP) -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo "Installing what the tests need"
	@$(PIP) -e ".[test]"
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@echo "Installing what the documentation site needs"
	@$(PIP) -e ".[docs]"
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/python identification/screw_drive_1/identify.py

lint: style types

style: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

# Programs that tests compile are kept for the next run, outside of the tree; FRICTAX_TEST_CACHE= keeps none.
export FRICTAX_TEST_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/frictax-tests

# By file: what the tests of one share is made once. The longest files come first: tests/conftest.py.
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder

# The types are checked beside the tests.
test: style
	@$(MAKE) --no-print-directory --jobs 2 types quick

quick: $(VENV)/.installed-test
	$(PYTEST) -m "not slow"

# How long each file takes, for their order: of the quick tests, or with MARK=slow of the slow tests
MARK ?= not slow
durations: $(VENV)/.installed-test
	$(PYTEST) -m "$(MARK)" --junitxml=build/durations.xml
	$(BIN)/python tests/durations.py build/durations.xml "$(MARK)"

# PART=2/3: of the files with slow tests each third, from the second.
PART ?= 1/1
test-slow: $(VENV)/.installed-test
	$(PYTEST) -m slow --part $(PART)

test-all: test test-slow docs

# The newest Python that runs, from 3.12 on: make newest NEWEST=/path/to/python3.14
PYTHONS = $(foreach v,14 13 12,python3.$(v) $(wildcard $(HOME)/.pyenv/versions/3.$(v).*/bin/python))
NEWEST ?= $(firstword $(foreach p,$(PYTHONS),$(shell $(p) -c 'print("$(p)")' 2>/dev/null)))
# The oldest Python that pyproject.toml allows: make oldest OLDEST=/path/to/python3.11
OLDEST ?= python$(shell $(PYTHON) tests/lower_bounds.py --python)
UNCONSTRAINED := -m pip install -qq --disable-pip-version-check

newest:
	@test -n "$(NEWEST)" || { echo "make newest needs Python 3.12 or newer. Name it: make newest NEWEST=/path/to/python3.13"; exit 1; }
	@echo "Installing frictax and the newest packages into .venv-newest with $$($(NEWEST) --version)"
	@$(NEWEST) -m venv --clear .venv-newest
	@.venv-newest/bin/python $(UNCONSTRAINED) .
	.venv-newest/bin/python -W error tests/try_installed.py

oldest:
	@$(OLDEST) --version >/dev/null || { echo "make oldest needs $(OLDEST). Name it: make oldest OLDEST=/path/to/python"; exit 1; }
	@echo "Installing frictax and the oldest packages into .venv-oldest with $$($(OLDEST) --version)"
	@$(OLDEST) -m venv --clear .venv-oldest
	@.venv-oldest/bin/python $(UNCONSTRAINED) . $$($(OLDEST) tests/lower_bounds.py)
	.venv-oldest/bin/python tests/try_installed.py

cases: $(VENV)/.installed-test
	$(BIN)/pytest -q -n $(WORKERS) --maxprocesses 8 tests/test_cases.py

# NOTEBOOKS=off leaves the tutorials without figures, for a quick look at text.
NOTEBOOKS ?= force
docs: $(VENV)/.installed-docs
	rm -rf build/docs
	FRICTAX_DOCS_NOTEBOOKS=$(NOTEBOOKS) $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env --jobs 4 \
	  --conf-dir docs --doctree-dir build/docs-trees . build/docs
	$(BIN)/python docs/extensions/check_site.py build/docs

dist: $(BIN)/python
	@$(PIP) build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-test
	$(BIN)/python experiments/benchmarks/p1.py
	$(BIN)/python experiments/benchmarks/p2.py
	$(BIN)/python experiments/benchmarks/p3.py
	$(BIN)/python experiments/benchmarks/p4.py
	$(BIN)/python experiments/benchmarks/p4_process.py
	$(BIN)/python experiments/benchmarks/p6.py
	$(BIN)/python experiments/benchmarks/p7.py
	$(BIN)/python experiments/benchmarks/fleet.py
	$(BIN)/python experiments/benchmarks/coupled.py
	$(BIN)/python experiments/benchmarks/first_answer.py
	$(BIN)/python experiments/benchmarks/import_time.py
	$(BIN)/python experiments/benchmarks/reading.py

clean:
	rm -rf $(VENV) .venv-newest .venv-oldest build dist .pytest_cache .ruff_cache .hypothesis experiments/benchmarks/build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
