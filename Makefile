# make demo: a new environment and the main job on the CPU. make test: the tests.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test clean

# The stamp is as new as the last install; editing pyproject.toml installs again.
.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

demo: .venv/installed
	$(BIN)/swell demo --out swell-demo

test: .venv/installed
	OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

clean:
	rm -rf .venv swell-demo build *.egg-info
