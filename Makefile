# make demo       set up .venv and show the whole method on 5,000 digits (ARGS="--seed 1" to vary it)
# make test       set up .venv, lint, type-check and test
# make test-full  the long tests too
# make faults     kills, full disks and power cuts at every step at the file system (ARGS="--minutes 10" for a part of it)
# make test-gpu   the tests of CUDA-only code, on a machine that has it
# PIP_ARGS goes to pip, e.g. to take PyTorch's CPU build (see the README).
PYTHON ?= python3
ARGS ?=
PIP_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
# two processes of one thread each: most tests run the command on a tiny recipe, which gains nothing from more
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt $(PIP_ARGS)

.PHONY: demo test test-full test-gpu faults lint clean

demo: $(VENV)/installed-demo
	$(BIN)/autonovel demo $(ARGS)

test: lint
	$(PYTEST) -m "not full and not gpu" --cov --cov-report=term --cov-fail-under=90 $(ARGS)

test-full: lint
	$(PYTEST) -m "not gpu" $(ARGS)

test-gpu: $(VENV)/installed-dev
	$(BIN)/pytest -m gpu $(ARGS)

faults: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults $(ARGS)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed-demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing autonovel into $(VENV) (torch is large: a few minutes at most)"
	$(PIP) --editable ".[demo]"
	@touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing autonovel and its test tools into $(VENV) (torch is large: a few minutes at most)"
	$(PIP) --editable ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*
