PYTHON ?= python3
VENV := .venv
# Rooms that work without Linux. Competitions use nothing but kit and metrics, and agents run in sandboxes.
PORTABLE := $(filter-out %/run %/sandbox %/agents %/competitions %/__pycache__,$(wildcard src/mlebench/*))
PIP := $(VENV)/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test explore lint docs release clean

demo: $(VENV)/installed
	$(VENV)/bin/mlebench agents install baseline || true  # the demo continues without it, and says so
	$(VENV)/bin/mlebench demo

# Three processes for two cores: tests of sandboxes and of interruptions mostly wait.
test: $(VENV)/tested
	$(VENV)/bin/python -m pytest --numprocesses 3 --dist loadgroup $(TESTS)

explore: $(VENV)/tested
	$(VENV)/bin/python -m pytest --numprocesses 2 -m hypothesis --hypothesis-profile explore --timeout 7200 $(TESTS)

lint: $(VENV)/linted
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/basedpyright
	$(VENV)/bin/basedpyright --pythonplatform Darwin $(PORTABLE)

docs: $(VENV)/documented
	$(VENV)/bin/python docs/site/build.py build/docs

release:
	.ci/release

clean:
	rm -rf dist $(VENV) .venv-* build/docs .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/tested: $(VENV)/installed
	$(PIP) --editable '.[test]'
	touch $@

$(VENV)/linted: $(VENV)/tested
	$(PIP) --editable '.[lint]'
	touch $@

$(VENV)/documented: $(VENV)/installed
	$(PIP) --editable '.[docs]'
	touch $@
