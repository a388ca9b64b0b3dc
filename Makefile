# Everything a fresh machine needs but Python 3.11 or later (with venv and pip), Rust (cargo) and make comes from PyPI and
# crates.io into .venv and target. Stamps in .venv remember what is done, so that a second call is quick.

PYTHON ?= python3
MAKEFLAGS += --no-builtin-rules
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet
# Tests go to as many processes as there are processors.
# Those that start processes of their own run one after the other.
PYTEST := $(BIN)/python -m pytest --dist=loadgroup --numprocesses=$(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml)
SOURCES := pyproject.toml README.md LICENSE $(RUST_SOURCES) $(shell find python -name '*.py' -o -name '*.pyi' -o -name '*.tsv' -o -name py.typed)

.PHONY: help demo test test-all test-mpich soak test-gpu gpu-smoke gpu-install wheels standard lint lint-rust lint-python audit format bench bench-small compare counts track report
.PHONY: versus gradbench gallery times science versus-gpu clients generated develop device-report distributed docs release release-check release-wheel release-source reproducible test-aarch64 cross-modules clean core-tests test-environment plan-demo plan-test plan-test-all test-lowest
.DEFAULT_GOAL := help

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: plan-demo .venv/demo .venv/wheel ## Train a classifier of handwritten digits and draw how it learned
	$(BIN)/python examples/digits.py

develop: .venv/dev ## Install the package from this checkout, built fast, so that Python changes need no new wheel
	. $(BIN)/activate && maturin develop --profile fast
	mkdir -p target/wheel
	touch target/wheel/stamp .venv/wheel

test: plan-test ## Test the Rust core and the Python package, with light packages only, in a few minutes
	$(MAKE) --jobs=3 core-tests test-environment
	$(PYTEST) -m "not slow" $(OPTIONS)

test-all: plan-test-all .venv/test-all .venv/wheel ## Test with PyTorch, JAX and the tools around them as well, none of which may be missing
	$(PYTEST) --require=torch,jax,optax,autograd,keras,accelerate,lightning,dask,mlx,ndonnx,xarray,cuda,mpi4py,ray,basedpyright $(OPTIONS)

lint: lint-rust lint-python ## Check formats, lints and types

format: .venv/lint ## Format, and fix what can be fixed
	cargo fmt
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: .venv/docs .venv/wheel ## Build the site in output/docs, run its programs, and check links and pages; OPTIONS=--online links names of others
	PYTHONPATH=tools $(BIN)/python -m pages.build $(OPTIONS)
	PYTHONPATH=tools $(BIN)/python -m pages.check

bench: .venv/bench .venv/wheel ## Time the kernels, and the Python package
	cargo bench --locked --package oxigrad-core --features benches
	$(BIN)/python -m pytest benches $(OPTIONS)

versus: .venv/versus .venv/wheel target/advect/stamp ## Time oxigrad against other libraries
	$(BIN)/python benches/versus.py $(OPTIONS)

distributed: .venv/distributed .venv/wheel ## Train with several workers by every method on every engine, and print a table
	$(BIN)/python examples/distributed.py --engine all --method all --seeds 3 --picture output/distributed.png $(OPTIONS)

gpu-smoke: gpu-install ## Check in a minute that steps on the GPU here are right, with the PyTorch of PYTHON and the wheels in dist
	PYTHONPATH=output/gpu $(PYTHON) tests/cuda/smoke.py

test-gpu: gpu-install ## Test on the GPU here, with the PyTorch or CuPy of PYTHON and the wheels in dist: make test-gpu PYTHON=python3
	PYTHONPATH=output/gpu $(PYTHON) -m pytest --gpu -p no:benchmark --continue-on-collection-errors $(OPTIONS)

release: .venv/release ## Build a release into dist: wheel, source distribution, SBOM, checksums and notes
	rm -rf dist
	$(MAKE) release-wheel
	$(MAKE) release-source
	$(BIN)/python tools/release_files.py

clean: ## Remove everything that was built or installed here
	rm -rf .venv target output dist .pytest_cache .ruff_cache .hypothesis .mypy_cache
	find python tests tools examples benches -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	rm -f python/oxigrad/*.so

# --- for maintainers: docs/design/testing.md says what they are for ------------------------------------------------------------

test-aarch64: .venv/build .venv/test .venv/wheel # Test the core and the wheel for aarch64 by emulation, as root, in an hour; compare bits with those of here
	sh tests/cross/aarch64.sh $(BIN)/python

cross-modules: .venv/pip # Link the module for Windows and musl and test the core with musl, as root, in half an hour
	sh tests/cross/modules.sh $(BIN)/python

soak: .venv/test-all .venv/wheel # Kill workers and coordinators 200 times while they train, and cut links: make soak OPTIONS='--kills 20'
	$(BIN)/python tests/distributed/soak.py $(OPTIONS)

test-mpich: target/mpich/stamp .venv/wheel # Test the engine of MPI by MPICH, in the place of Open MPI
	target/mpich/bin/python -m pytest tests/distributed/test_mpi.py $(OPTIONS)

# Beside NumPy, PyTorch or CuPy, and what they need: pip chooses in dist, and asks no index.
gpu-install:
	$(PYTHON) -m pip install --quiet --no-index --no-deps --find-links dist --upgrade --target output/gpu oxigrad $(OF_GPU)
	$(PYTHON) -m pip install --quiet --no-index --no-deps --find-links dist --upgrade --target output/gpu $(BY_PYTHON) || \
		echo 'dist has not all of $(BY_PYTHON) for this Python: tests that need them are skipped, or fail' >&2

OF_GPU := array-api-compat iniconfig packaging pluggy pygments pytest safetensors sortedcontainers
# Their wheels are of one release of Python each: of those that machines with a GPU may have.
BY_PYTHON := hypothesis ml-dtypes
GPU_PYTHONS := 3.11 3.12 3.13 3.14

wheels: .venv/pip # Build the wheel, and gather in dist what else test-gpu needs, for a machine without network or Rust
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist --group gpu .
	for version in $(GPU_PYTHONS); do \
		$(BIN)/python -m pip download --quiet --no-deps --only-binary=:all: --python-version $$version --dest dist $(BY_PYTHON) || exit 1; \
	done

lint-rust:
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets --features oxigrad-core/benches -- -D warnings
	cargo clippy --locked --package oxigrad-core --features benches --bench counts -- -D warnings # which is no default target

lint-python: .venv/lint .venv/test .venv/wheel
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/python tools/type_completeness.py

# Advisories come from a database on GitHub: where that cannot be fetched, or a copy be used, the last line says so.
audit: .venv/audit target/tools/bin/cargo-deny # Check workflows, project files, and licences, sources and known vulnerabilities of the Rust dependencies
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --offline .github
	$(BIN)/repo-review .
	cargo fetch --quiet --locked
	target/tools/bin/cargo-deny --offline --locked --workspace check licenses bans sources
	@if target/tools/bin/cargo-deny --locked fetch db; then \
		target/tools/bin/cargo-deny --offline --locked --workspace check advisories; \
	else \
		echo 'make audit: SKIPPED advisories: their database cannot be fetched; nothing is known of vulnerabilities' >&2; \
	fi

bench-small: .venv/bench .venv/wheel # Run every benchmark once, on small arrays: none may have stopped working
	cargo test --locked --package oxigrad-core --features benches --bench kernel --bench tape
	$(BIN)/python -m pytest benches --benchmark-disable
	$(BIN)/python benches/compare.py --small
	$(BIN)/python benches/versus.py --small
	$(BIN)/python benches/gradbench --small
	$(BIN)/python benches/gallery_gradients.py --small

compare: .venv/wheel # Time this checkout beside another revision: make compare BASE=main OPTIONS='--rows update'
	$(BIN)/python benches/compare.py $(BASE) $(OPTIONS)

counts: .venv/wheel # Count the instructions of the core's hot paths, which may grow by 1 %, and of calls of users' rules; OPTIONS=--record accepts them
	$(BIN)/python benches/counts.py $(OPTIONS)

track: .venv/versus .venv/wheel # Add this revision's times and instruction counts to benches/history, on a quiet machine
	$(BIN)/python benches/track.py $(OPTIONS)

report: .venv/demo # Draw benches/history: docs/performance.svg
	$(BIN)/python benches/report.py $(OPTIONS)

standard: .venv/test .venv/wheel # Print what of the Array API standard is differentiable, and over which installed libraries
	PYTHONPATH=tests/emulators:tests/tables $(BIN)/python tools/standard.py

clients: develop .venv/test-all # Run programs and tests of libraries that stand on autograd, and training loops of others, and print tables
	.venv/bin/python tools/clients.py $(OPTIONS)

device-report: .venv/test-all .venv/wheel # Print registers, spills and access widths of kernels for GPUs; a spill fails
	PYTHONPATH=tests/cuda:tests/emulators:tests/tables:tools $(BIN)/python tools/device_report.py $(OPTIONS)

gradbench: .venv/versus .venv/wheel # Time the twelve problems of GradBench beside PyTorch, JAX and HIPS autograd
	$(BIN)/python benches/gradbench $(OPTIONS)

gallery: .venv/versus .venv/wheel # Time the programs of examples/gallery beside HIPS autograd and jax.jit
	$(BIN)/python benches/gallery_gradients.py $(OPTIONS)

times: .venv/versus .venv/wheel target/advect/stamp # Time everything beside other libraries, an hour and more, print docs/design/times.md, and add to benches/history
	mkdir -p output
	$(BIN)/python benches/versus.py --json output/versus.json $(OPTIONS)
	$(BIN)/python benches/gradbench --json output/gradbench.json $(OPTIONS)
	$(BIN)/python benches/times_page.py output/versus.json output/gradbench.json
	$(BIN)/python benches/track.py --only rows --measured output/versus.json

science: .venv/versus .venv/wheel # Time programs and functions as scientists write them, at most 12 minutes, and print their table of docs/design/times.md
	mkdir -p output
	$(BIN)/python benches/versus.py --rows science --samples 15 --json output/science.json $(OPTIONS)
	$(BIN)/python benches/gradbench --rows science --samples 9 --json output/science_gradbench.json $(OPTIONS)
	$(BIN)/python benches/times_page.py --science output/science.json output/science_gradbench.json

versus-gpu: gpu-install # Time oxigrad against PyTorch on the GPU here, with the wheels in dist: make versus-gpu PYTHON=python3
	PYTHONPATH=output/gpu $(PYTHON) benches/versus.py --rows 'gpu *' $(OPTIONS)

generated: .venv/test .venv/wheel # Print the rules as native code, and tables of rules and of the names of NumPy, SciPy and the standard
	$(BIN)/python tools/generated.py $(OPTIONS)

# Without the paths and the time of this build, so that every folder gives the same bytes.
release-wheel: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct || date +%s)
release-wheel: export RUSTFLAGS += --remap-path-prefix=$(CURDIR)=. --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=cargo
release-wheel: .venv/release # Build the wheel of a release into dist: make release-wheel OPTIONS='--zig --compatibility manylinux_2_28'
	$(BIN)/maturin build --release --locked --out dist $(OPTIONS)
	$(BIN)/python tools/wheel_packing.py dist/*.whl

test-lowest: .venv/lowest target/wheel/stamp # Test with the lowest releases of the dependencies that are declared, as uv resolves them
	$(PYTHON) -m venv --clear target/lowest
	$(BIN)/uv pip install --quiet --python target/lowest/bin/python --resolution lowest target/wheel/*.whl
	$(BIN)/uv pip freeze --python target/lowest/bin/python | grep -v '^oxigrad' > target/lowest/lowest.txt
	cat target/lowest/lowest.txt
	$(BIN)/uv pip install --quiet --python target/lowest/bin/python --constraint target/lowest/lowest.txt --group test
	target/lowest/bin/python -m oxigrad doctor
	target/lowest/bin/python -m pytest -m "not slow" tests/autodiff tests/optim tests/ops tests/rules tests/schedules tests/tree $(OPTIONS)

release-source: .venv/release # Build the source distribution of a release into dist
	$(BIN)/maturin sdist --out dist

release-check: # Install the wheel and the source distribution of dist with every CPython here, and run the demo; 10 minutes
	$(PYTHON) tools/release_check.py $(OPTIONS)

reproducible: .venv/release # Build the source distribution and, from it, the wheel twice, in two folders, and compare their bytes
	rm -rf target/reproducible
	for folder in one another/deeper; do \
		$(BIN)/maturin sdist --out target/reproducible/$$folder && \
		tar --extract --gzip --strip-components 1 --directory target/reproducible/$$folder --file target/reproducible/$$folder/*.tar.gz \
		|| exit 1; \
	done
	for folder in one another/deeper; do \
		$(MAKE) --directory target/reproducible/$$folder --old-file .venv/release BIN=$(CURDIR)/$(BIN) release-wheel || exit 1; \
	done
	cd target/reproducible && sha256sum one/*.tar.gz one/dist/*.whl && diff --recursive one/dist another/deeper/dist && \
		cmp one/*.tar.gz another/deeper/*.tar.gz && echo 'equal bytes'

# --- the environment ------------------------------------------------------------------------------------------------------

.venv/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "oxigrad needs Python 3.11 or later: make PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade 'pip>=25.1' # the first that knows dependency groups
	touch $@

# What a target installs, compiles and runs, told before it begins; what is done already is left out.
plan-demo plan-test plan-test-all: plan-%:
	@echo 'make $*, on 2 cores:'
	@$(MAKE) --question .venv/$* >/dev/null 2>&1 || \
		echo '* installs the group "$*" of pyproject.toml into .venv: $(SIZE_$*), about $(TIME_$*) at 100 Mbit/s'
	@$(MAKE) --question .venv/wheel >/dev/null 2>&1 || echo '* $(COMPILES)'
	@echo '* $(RUNS_$*)'

COMPILES := compiles the Rust core in release mode and installs oxigrad into .venv: 0.5 GB in target, about 3 minutes
RUNS_demo := trains a classifier of digits: some seconds
RUNS_test := compiles and runs the tests of the core meanwhile, a minute more; then runs those of the Python package, about 3 minutes
RUNS_test-all := runs all tests of the Python package: an hour, and more

# The disk space of the larger groups, which the user is told before they are installed, and the time of those with a plan.
SIZE_demo := 0.4 GB
SIZE_docs := 0.4 GB
SIZE_test := 0.5 GB
SIZE_test-all := 7 GB, most of it CUDA libraries of PyTorch
SIZE_versus := 6 GB, most of it CUDA libraries of PyTorch
TIME_demo := 30 s
TIME_test := a minute
TIME_test-all := 10 minutes

.venv/audit .venv/build .venv/demo .venv/distributed .venv/docs .venv/lowest .venv/release .venv/test .venv/test-all .venv/lint .venv/bench .venv/versus .venv/dev: pyproject.toml | .venv/pip
	@echo 'Installing the packages of the group "$(@F)" of pyproject.toml into .venv ($(or $(SIZE_$(@F)),less than 1 GB))'
	$(BIN)/python -m pip install --group $(@F)
	touch $@

# Side by side: pip waits for the network, and the linker of the wheel leaves a processor idle.
core-tests:
	cargo test --locked --package oxigrad-core

test-environment: .venv/test target/wheel/stamp
	$(MAKE) .venv/wheel # pip installs for one at a time

# The wheel as users get it: built by pip through maturin, in release mode. Verbose, so that cargo says which crate it compiles.
target/wheel/stamp: $(SOURCES) | .venv/pip
	@echo '$(@D): $(COMPILES)'
	rm -rf $(@D)
	$(BIN)/python -m pip wheel --verbose --no-deps --wheel-dir $(@D) .
	touch $@

# With its dependencies; pip leaves a package of the same version alone, unless forced.
.venv/wheel: target/wheel/stamp | .venv/pip
	$(BIN)/python -m pip install --force-reinstall --no-deps target/wheel/*.whl
	$(PIP) target/wheel/*.whl
	touch $@

# The packages of .venv, in an environment whose mpiexec is that of MPICH.
target/mpich/stamp: .venv/test-all
	$(PYTHON) -m venv target/mpich
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
		$$(target/mpich/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/of-tests.pth
	target/mpich/bin/python -m pip install --quiet mpich
	touch $@

# A peer that needs Python 3.12: an environment of its own, and no peer where no such Python is found.
target/advect/stamp: | .venv/pip
	for python in $(PYTHON) python3.12 python3.13 $(wildcard $(HOME)/.pyenv/versions/3.1[2-9]*/bin/python); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then \
			"$$python" -m venv target/advect && target/advect/bin/python -m pip install --quiet 'advect>=0.3' && break; \
		fi; \
	done
	mkdir -p $(@D) && touch $@

target/tools/bin/cargo-deny:
	cargo install --quiet --locked --root target/tools cargo-deny --version '^0.20'
