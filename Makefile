# make demo: a new environment and the main job on the CPU. make test: the tests. make docs: the site, in build/docs.
# make wheel: a wheel for any Linux of the last years. make dist: sdist and wheel, checked.
# make sanitize: the native library under sanitizers; it takes GCC and CMake.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test sanitize docs wheel dist clean

# The stamp is as new as the last install; editing pyproject.toml, or a source of the native library, installs again.
.venv/installed: pyproject.toml CMakeLists.txt $(shell find swell -name '*.cpp' -o -name '*.hpp' -o -name slots.py)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

.venv/installed-docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

demo: .venv/installed
	$(BIN)/swell demo --out swell-demo

test: .venv/installed
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# The contracts of the kernels, with the native library under AddressSanitizer and UBSan, then under ThreadSanitizer.
# Python leaks on purpose; its own small blocks would hide what lies beyond an array; a test forks beside threads.
CONTRACTS := tests/core/test_native.py tests/pde/test_contracts.py tests/distributed/test_contracts.py

sanitize: sanitize-address,undefined sanitize-thread

sanitize-%: .venv/installed
	cmake -S . -B build/sanitize/$* -DPython_EXECUTABLE=$(abspath $(BIN))/python -DSWELL_SANITIZE=$*
	cmake --build build/sanitize/$* --parallel
	LD_PRELOAD="$$(g++ -print-file-name=lib$(if $(findstring thread,$*),tsan,asan).so) $$(g++ -print-file-name=libstdc++.so)" \
	  PYTHONMALLOC=malloc \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=die_after_fork=0 \
	  SWELL_BUILD=build/sanitize/$* OPENBLAS_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -q -p tests.sanitized $(CONTRACTS)

# Warnings are errors; every page that has code runs it; links are followed at the end.
docs: .venv/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -j auto -c docs . build/docs
	$(BIN)/python docs/check_links.py build/docs

# The environment of a release is its own. Nothing is uploaded.
.venv-release/installed: pyproject.toml
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check -e '.[release]'
	touch $@

# Zig's compiler links against glibc 2.28 and has its own C++ library; auditwheel checks both, and names the wheel so.
wheel: .venv-release/installed
	rm -rf build/wheel
	CXX="python-zig c++ -target x86_64-linux-gnu.2.28" PATH="$(CURDIR)/.venv-release/bin:$$PATH" .venv-release/bin/python \
	  -m build --wheel --outdir build/wheel -C build-dir=build/zig -C cmake.define.SWELL_LEVELS="v2;v3"
	PATH="$(CURDIR)/.venv-release/bin:$$PATH" .venv-release/bin/auditwheel repair --plat manylinux_2_28_x86_64 -w dist build/wheel/*.whl

dist: .venv-release/installed
	rm -rf dist
	.venv-release/bin/python -m pytest tests/test_release.py
	.venv-release/bin/python -m build --sdist
	$(MAKE) wheel
	.venv-release/bin/python -m twine check --strict dist/*
	.venv-release/bin/check-wheel-contents dist/*.whl

clean:
	rm -rf .venv .venv-release swell-demo build docs/generated dist *.egg-info swell/_native*
