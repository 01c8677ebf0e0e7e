# Two commands: `make demo` and `make test`. Both set up .venv on the first run and are quiet after that.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --quiet

.PHONY: demo test test-all test-bench test-torch test-pure kernel check browser bench clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; ok = v >= (3, 11); ok or print(f"neighboragg needs Python 3.11 or newer; {sys.executable} is {v.major}.{v.minor}. Try: make PYTHON=python3.12"); sys.exit(not ok)'
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade pip

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@$(PIP) --editable ".[cli]"
	@touch $@

KERNEL := src/neighboragg/search/_kernel

$(VENV)/.dev: pyproject.toml hatch_build.py tools/build_kernel.py $(KERNEL)/search.cpp | $(BIN)/python
	@$(PIP) --editable ".[all]" --group dev
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	@$(BIN)/neighboragg demo

# The quick run: every statement once, on the smallest data that can refute it.
test: check browser
	@$(BIN)/python -m pytest -n auto

# Everything: all cases, all draws, kills, sanitizers, examples in docstrings, and branch coverage.
test-all: check browser
	@$(BIN)/python -m pytest -n auto --full --cov --cov-report=term

# The reproduction of the paper is not part of the wheel, nor are its tests of `test`.
test-bench: $(VENV)/.dev
	@$(BIN)/python -m pytest -n auto --full benchmarks/tests

# Apart from `test`, as PyTorch is a large download.
test-torch: $(VENV)/.torch
	@$(BIN)/python -m pytest -n auto --full tests/torch_networks benchmarks/tests/images src/neighboragg/torch \
	  --cov=src/neighboragg/torch --cov-branch --cov-config=/dev/null --cov-fail-under=95 --cov-report=term

# The search compiled again, in place; an installation does so as well.
kernel:
	@$(PYTHON) tools/build_kernel.py > /dev/null

# As it is installed where there is no compiler: the search is NumPy's, and its results are the same.
PURE := PYTHONPATH=$(CURDIR)/$(VENV)/pure $(BIN)/python

test-pure: $(VENV)/.dev
	@rm -rf $(VENV)/pure
	@CXX=/bin/false $(PIP) --no-deps --target $(VENV)/pure .
	@$(PURE) -c 'from neighboragg.search._kernel import kernel_in_use as k; assert k().name == "numpy", k()'
	@$(PURE) -m pytest -n auto --full tests/search
	@$(PURE) -m pytest -n auto tests --ignore tests/search

$(VENV)/.torch: $(VENV)/.dev
	@echo "Installing PyTorch ..."
	@$(PIP) --group torch
	@touch $@

# The review page is tested in a real browser: the one at hand, or Debian's where it may be installed.
browser:
	@command -v chromium chromium-browser google-chrome > /dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
	       && echo "Installing chromium for the browser tests ..." \
	       && apt-get -qq update > /dev/null && apt-get -qq install -y chromium > /dev/null 2>&1; } \
	  || echo "No chromium found: the browser tests will be skipped."

check: $(VENV)/.dev
	@$(BIN)/ruff check --quiet src tests benchmarks docs tools hatch_build.py
	@$(BIN)/ruff format --quiet --check src tests benchmarks docs tools hatch_build.py
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python tools/own_methods.py
	@$(BIN)/lint-imports --no-logo > $(VENV)/imports.log 2>&1 || { cat $(VENV)/imports.log; exit 1; }

bench: $(VENV)/.dev
	@for f in search quality_core fit_cost; do echo "== benchmarks/$$f.py"; $(BIN)/python -m benchmarks $$f || exit 1; done

clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
