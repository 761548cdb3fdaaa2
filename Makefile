# make demo: a new environment and the main job on the CPU. make test: the tests. make dist: wheel and sdist, checked.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test dist clean

# The stamp is as new as the last install; editing pyproject.toml installs again.
.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

demo: .venv/installed
	$(BIN)/swell demo --out swell-demo

test: .venv/installed
	OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# The environment of a release is its own. Nothing is uploaded.
.venv-release/installed: pyproject.toml
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check -e '.[release]'
	touch $@

dist: .venv-release/installed
	rm -rf dist
	.venv-release/bin/python -m pytest tests/test_release.py
	.venv-release/bin/python -m build
	.venv-release/bin/python -m twine check --strict dist/*
	.venv-release/bin/check-wheel-contents dist/*.whl

clean:
	rm -rf .venv .venv-release swell-demo build dist *.egg-info
