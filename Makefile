# Everything a newcomer needs; each target sets up what it uses. Only Python 3.11+ and make are needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
EXTRAS := dev,neural,minilm
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without its bytecode, each command that a test starts would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo quick test drill lint docs bench clean system

help: ## this list
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

# Python compiles what it imports; to compile all that is installed takes longer than to install it.
$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[$(EXTRAS)]'
	touch $@

$(VENV)/ready-bench: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[bench]'
	touch $@

demo: $(VENV)/ready ## de-identify invented notes, tag and score the example notes, offline
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

quick: lint ## lint, types, import contract and the fast tests, in two minutes
	CHAFFINCH_QUICK=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

# Three processes on two cores: a quarter of the time, tests wait for browsers, databases and killed processes.
test: lint system ## all checks: lint, types, import contract, tests, examples of the documentation
	$(BIN)/python -m pytest -n 3 --dist worksteal

drill: $(VENV)/ready system ## attacks on releases at full size; about half an hour
	CHAFFINCH_DRILL=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m drill

lint: $(VENV)/ready ## ruff, mypy --strict and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2 || $(BIN)/mypy  # two processes, which give up on a machine too busy to start them
	$(BIN)/lint-imports

docs: $(VENV)/ready ## run every example of README and docs
	$(BIN)/python -m pytest tests/docs

bench: $(VENV)/ready-bench ## speed beside the peers; the corpora too when CHAFFINCH_DATA names their folder
	$(BIN)/chaffinch bench kernels
	$(BIN)/chaffinch bench text
	test -z "$$CHAFFINCH_DATA" || $(BIN)/chaffinch bench corpora
	test -z "$$CHAFFINCH_DATA" || $(BIN)/chaffinch bench tagger

# Browser tests need chromium, those of the review station's other database postgresql, those of Spark Java.
SYSTEM := chromium postgresql default-jre-headless
system:
	@for package in $(SYSTEM); do \
	  dpkg -s $$package >/dev/null 2>&1 && continue; \
	  { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && apt-get -qq update && \
	    apt-get -qq install -y --no-install-recommends $$package >/dev/null; } || \
	    echo "$$package is missing: tests that need it are skipped here (in CI they fail)"; \
	done

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-out
