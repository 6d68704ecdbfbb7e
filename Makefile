# One command checks everything: `make check`. Each step can be run alone.
PYTHON ?= python
QUICK := $(wildcard tests/unit tests/engine tests/golden tests/cli tests/contract)

.PHONY: check lint types layers unit test rig-tests rig bench docs lock
check: lint types layers test

lint: ## formatting and rules
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .

types: ## mypy --strict, tests and bench included
	$(PYTHON) -m mypy

layers: ## imports go downwards only
	$(PYTHON) -c 'import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())'

unit: ## seconds: nothing real is started
	$(PYTHON) -m pytest -q -n 2 -m 'not ray and not rig and not slow' $(QUICK)

REAL := ray or rig or docker
test: ## everything that this machine can run; what is missing is named
	@ended=0; \
	$(PYTHON) -m pytest -q -n 2 -m 'not ($(REAL))' || ended=1; \
	$(PYTHON) -m pytest -q -m '$(REAL)' || ended=1; \
	exit $$ended

rig-tests: ## only what needs real hosts in network namespaces (root)
	$(PYTHON) -m pytest -q -m rig

bench: ## ours beside the peers, in one table
	$(PYTHON) -m bench

docs: ## the pages that are made from code
	$(PYTHON) -m heliostat.core.docs > docs/file.md

lock: ## pins with hashes and without any registry's address; needs `pip install uv`
	uv pip compile -q --universal --python-version 3.11 --no-emit-index-url --generate-hashes \
		--custom-compile-command 'make lock' --extra dev -o requirements/dev.lock pyproject.toml
	uv pip compile -q --python-version 3.11 --no-emit-index-url --generate-hashes --custom-compile-command 'make lock' \
		-c requirements/dev.lock -o requirements/images.lock requirements/images.in

N ?= 4
rig: ## hosts to play with, until Ctrl-C: make rig N=4
	$(PYTHON) -m tests.rig $(N)
