# make demo   set up and answer the main question, on this machine, in about a minute
# make test   set up and run every check: style, types, imports between rooms, tests; of one room: make test ROOM=theory
# make docs   set up and build the documentation into site/; needs no network once set up

PYTHON ?= python3
BIN := .venv/bin
# Python compiles to bytecode what is imported, when it is first imported; pip would take longer to do so for everything.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable
unexport PYTHONDONTWRITEBYTECODE

.PHONY: built-kernels demo test golden photographs slow-test hf-test ray-test sanitize faults faults-long docs gallery \
	picture calibration carry-over clean

demo: .venv/ready built-kernels
	$(BIN)/headcount measure sum-of-maxima --intrinsic-dim 4 --steps 2000 --out demo --figure demo/answer.svg

test: .venv/ready-for-development built-kernels
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 $(if $(ROOM),tests/$(ROOM))

slow-test: .venv/ready-for-development .venv/ready-for-docs built-kernels
	$(BIN)/python -m pytest -n 2 -m slow
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=thorough tests/data tests/answer tests/report tests/store

# As users measure: by the kernels where they are built, in programs compiled as usual.
AS_USERS := HEADCOUNT_BACKEND=auto XLA_FLAGS=
# What headcount says, compared with photographs taken before: everything here takes minutes, `make test` the quick part.
golden: .venv/ready-for-development built-kernels
	$(AS_USERS) $(BIN)/python -m pytest -n 2 -m "golden or not golden" tests/golden

# Take them again after a change that is meant; the commit says why they differ.
photographs: .venv/ready-for-development built-kernels
	$(AS_USERS) HEADCOUNT_TAKE_PHOTOGRAPHS=1 $(BIN)/python -m pytest -n 2 -m "golden or not golden" tests/golden

# Trained models need torch and transformers, a gigabyte; `make test` checks what can be checked without them.
# TORCH says which torch: a plain `torch` brings its GPU libraries along, gigabytes more.
TORCH ?= torch==2.13.0
hf-test: .venv/ready-for-hf
	$(BIN)/python -m pytest -n 2 tests/pretrained tests/stock tests/models/test_torch_export.py

# The laws of the kernels on a library that ends the process at an address or an operation without meaning; needs g++.
# Built elsewhere, so that the one in use stays. Python must load ASan first, and C++ before jaxlib throws; leaks are Python's.
SANITIZED := $(CURDIR)/.cache/sanitized
PRELOADED = $(foreach library,asan stdc++,$(shell g++ -print-file-name=lib$(library).so))
sanitize: .venv/ready-for-development
	rm -rf $(SANITIZED) && mkdir -p $(dir $(SANITIZED)) && cp -r kernels $(SANITIZED)
	CXX="g++ -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined" \
		HEADCOUNT_KERNELS_GPU=0 $(BIN)/python $(SANITIZED)/build_library.py
	HEADCOUNT_KERNELS_LIBRARY=$(SANITIZED)/headcount_kernels/libheadcount_kernels.so HEADCOUNT_BACKEND=fused \
		LD_PRELOAD="$(PRELOADED)" ASAN_OPTIONS=detect_leaks=0 JAX_PLATFORMS=cpu \
		$(BIN)/python -m pytest tests/backends --ignore tests/backends/test_package.py --ignore tests/backends/test_rebuild.py

# Kills, failing disks, damaged files and bad inputs on purpose, and checks that nothing is lost: 5 minutes, or half an hour.
faults: .venv/ready-for-ray
	$(BIN)/python -m faults.campaign

faults-long: .venv/ready-for-ray
	$(BIN)/python -m faults.campaign --long

# Training on a cluster needs Ray, 200 MB; `make test` checks what can be checked without it.
ray-test: .venv/ready-for-ray built-kernels
	$(BIN)/python -m pytest -m "slow or not slow" $(wildcard tests/engine/test_executors.py tests/engine/test_cluster*.py) \
		tests/cli/test_on.py

docs: .venv/ready-for-docs
	$(BIN)/python docs/scripts/build_site.py

# Minutes; trained models are kept in results/gallery, so that a second run only answers and draws again.
gallery: .venv/ready built-kernels
	$(BIN)/python docs/scripts/gallery.py

picture: demo
	$(BIN)/headcount show demo --figure docs/answer.svg
	$(BIN)/headcount collide demo --heads 1:5
	cp demo/collisions/floor-near-data.svg docs/floor.svg
	$(BIN)/headcount measure nearest-neighbour --dim 8 --lengths 9 --heads 1,2,4,8 --ranks 1,2,4,8 --seeds 2 \
		--out demo/nearest --figure docs/rank-nearest.svg
	$(BIN)/headcount measure sum-of-maxima --lengths 16 --heads 1:6 --ranks 1,2,4,8 --seeds 2 \
		--out demo/retrieval --figure docs/rank-retrieval.svg

calibration: .venv/ready built-kernels
	$(BIN)/python -m benchmarks.calibration --out calibration --figure docs/calibration.svg --page docs/calibration.md

# About an hour; answers and stock models are kept in carry-over/, so that a second run continues. Needs torch and transformers.
carry-over: .venv/ready-for-hf built-kernels
	$(BIN)/python -m benchmarks.carry_over --out carry-over --figure docs/carry-over.svg --page docs/carry-over.md

clean:
	rm -rf .venv .pytest_cache .cache demo site docs/generated kernels/headcount_kernels/lib*

.venv/ready: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit('headcount needs Python 3.11 or newer, this is ' + sys.version.split()[0] if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv .venv
	$(INSTALL) .
	touch $@

.venv/ready-for-development: .venv/ready
	$(INSTALL) '.[dev]'
	touch $@

.venv/ready-for-docs: .venv/ready
	$(INSTALL) '.[docs]'
	touch $@

.venv/ready-for-hf: .venv/ready-for-development
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile '$(TORCH)'
	$(INSTALL) '.[hf]'
	touch $@

.venv/ready-for-ray: .venv/ready-for-development
	$(INSTALL) '.[ray]'
	touch $@

# The kernels make training faster and are never needed: without a compiler, one sentence says what is lost, and make goes on.
# Asked each time, because only the script knows whether the library is whole and of these sources; that takes 0.1 s.
built-kernels: .venv/ready
	@$(BIN)/python kernels/build_library.py --install --if-changed || true
