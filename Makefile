# Two commands set a fresh machine up: `git clone`, then `make run` (or `make view` for the small install without torch).
PYTHON ?= python3
VENV := .venv
VIEW := .venv-view
PORT ?= 8501
NEW_ENOUGH := $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one: make $(MAKECMDGOALS) PYTHON=python3.12")'
STREAMLIT_FLAGS := --server.port $(PORT)

.PHONY: run view test setup lint clean

run: $(VENV)/.run-ready
	$(VENV)/bin/streamlit run app.py $(STREAMLIT_FLAGS)

view: $(VIEW)/.view-ready
	$(VIEW)/bin/streamlit run app.py $(STREAMLIT_FLAGS)

setup: $(VENV)/.run-ready

test: $(VENV)/.test-ready
	./tests/browser/need_chromium.sh
	$(MAKE) lint
	$(VENV)/bin/python -m pytest

lint: $(VENV)/.test-ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

$(VENV)/.run-ready: requirements.txt requirements-view.txt
	@$(NEW_ENOUGH)
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet -r requirements.txt
	touch $@

$(VENV)/.test-ready: requirements-dev.txt $(VENV)/.run-ready
	$(VENV)/bin/python -m pip install --quiet -r requirements-dev.txt
	touch $@

$(VIEW)/.view-ready: requirements-view.txt
	@$(NEW_ENOUGH)
	test -d $(VIEW) || $(PYTHON) -m venv $(VIEW)
	$(VIEW)/bin/python -m pip install --quiet -r requirements-view.txt
	touch $@

clean:
	rm -rf $(VENV) $(VIEW) .mypy_cache .ruff_cache .pytest_cache
