# make demo and make test are all the set-up there is: Python 3.11 with venv and pip, and make.

PYTHON ?= $(shell command -v python3.11 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt

.PHONY: demo test lint types tests clean

demo: $(VENV)/.installed
	$(BIN)/farview demo -o demo

test: lint types tests

lint: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(VENV)/.installed-test
	$(BIN)/basedpyright

tests: $(VENV)/.installed-test
	$(BIN)/python -m pytest

clean:
	rm -rf $(VENV) demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The stamps are files, so that a second call installs nothing unless what is to be installed has changed.
$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing farview into $(VENV): some minutes the first time, most of it torch"
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(INSTALL) --editable '.[test]'
	@touch $@
