# make demo       set up .venv and show the whole method on 5,000 digits (ARGS="--seed 1" to vary it)
# make test       set up .venv, lint, type-check and test
# make test-full  the long tests too
# make coverage   make test, slower, with the lines that no test reaches
# make faults     kills, full disks and power cuts at every step at the file system (ARGS="--minutes 10" for a part of it)
# make test-gpu   the tests of CUDA-only code, on a machine that has it
# make fuzz       every parser of outside data, ten minutes in all (ARGS="30" for thirty); a table of what was tried
# make lock       write requirements/*.txt anew (needs uv)
# PIP_ARGS goes to pip, e.g. to take PyTorch's CPU build (see the README).
# LOCKED=0 installs the newest versions that fit instead of those in requirements/, whose checksums are checked.
PYTHON ?= python3
ARGS ?=
PIP_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
# two processes of one thread each: most tests run the command on a tiny recipe, which gains nothing from more
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder
PIP := $(BIN)/python -m pip install --quiet $(PIP_ARGS)
LOCKED ?= 1
ifeq ($(LOCKED),1)
# packages by their checksums; then torch, which finds there all that it needs but packages of its own platform
INSTALL = $(PIP) --require-hashes --no-deps --requirement requirements/$(1).txt && \
	$(PIP) --constraint constraints.txt torch && $(PIP) --no-deps --no-build-isolation --editable .
else
INSTALL = $(PIP) --constraint constraints.txt --editable ".[$(1)]"
endif

.PHONY: demo test test-full coverage test-gpu faults fuzz lint lock clean

demo: $(VENV)/installed-demo
	$(BIN)/autonovel demo $(or $(ARGS),$(if $(wildcard runs/demo-seed0/run.json),--resume))

test: lint
	$(PYTEST) -m "not full and not gpu" $(ARGS)

coverage:
	$(MAKE) test ARGS="--cov --cov-report=term --cov-fail-under=95 $(ARGS)"

test-full: lint
	$(PYTEST) -m "not gpu" $(ARGS)

test-gpu: $(VENV)/installed-dev
	$(BIN)/pytest -m gpu $(ARGS)

faults: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults $(ARGS)

fuzz: $(VENV)/installed-dev
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python tests/strangers/fuzz.py $(ARGS)

lock:
	$(PYTHON) requirements/lock.py

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed-demo: pyproject.toml constraints.txt requirements/demo.txt | $(BIN)/python
	@echo "Installing autonovel into $(VENV) (torch is large: a few minutes at most)"
	$(call INSTALL,demo)
	@touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt requirements/dev.txt | $(BIN)/python
	@echo "Installing autonovel and its test tools into $(VENV) (torch is large: a few minutes at most)"
	$(call INSTALL,dev)
	@touch $@

clean:
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*
