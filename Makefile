# `make demo` shows it, `make test` checks it; `make help` lists the rest. The build itself is CMake (CMakePresets.json).
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CARDS ?= all
launcher := $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

nvcc := $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))

# Folders whose tests run under AddressSanitizer and UBSan every time: parsers of outside input, and SIMD kernels.
sanitized := $(foreach folder,base recipe tokenizer model data artifact fuzz ops_cpu,$(if $(wildcard tests/$(folder)/CMakeLists.txt),$(folder)))
# Folders with threads of their own, for ThreadSanitizer.
threaded := $(foreach folder,base comm data ops_cpu train,$(if $(wildcard tests/$(folder)/CMakeLists.txt),$(folder)))
empty :=
space := $(empty) $(empty)
# Folders whose tests run under qemu, built for Arm: kernels, and what must have the same bits everywhere. Of the golden cases only
# those on the kernels: qemu computes floats a hundred times as slowly.
crossed := $(foreach folder,base quant artifact generate textcode ops_cpu,$(if $(wildcard tests/$(folder)/CMakeLists.txt),$(folder)))
labels = ^($(subst $(space),|,$(strip $(1))))$$

.PHONY: help demo test build install package package-cuda wheel bench lint format cuda cuda-objects aarch64 sanitize tsan torture sbom clean
.DEFAULT_GOAL := help

help:
	@echo "make demo      install what is missing, build, train a small model on English text, score it, show samples"
	@echo "make test      install what is missing, check the format, build, run every test"
	@echo "make build     build/bin/fairway and the tests, optimized"
	@echo "make install   the program, its manual page and completions, and the C library to PREFIX (/usr/local), below DESTDIR"
	@echo "make package   build/package: a .deb and a relocatable .tar.gz for Debian 12, Ubuntu 22.04 and later ones"
	@echo "make package-cuda  build/cuda/package: the same with CUDA, whose own libraries are opened at run time"
	@echo "make wheel     build/package: a Python wheel with the program, which reads artifacts and runs into NumPy and pandas"
	@echo "make bench     timings of the training step and of the ops on this machine"
	@echo "make lint      format check, clang-tidy over src/, layering"
	@echo "make format    rewrite sources with clang-format"
	@echo "make sanitize  the quick tests under AddressSanitizer and UBSan (part of make test)"
	@echo "make tsan      the threaded tests under ThreadSanitizer"
	@echo "make torture   every file operation of six commands goes wrong once, in six ways, and allocations (hours)"
	@echo "make sbom      build/fairway.spdx.json: what the program is made of, with versions and licences (SPDX)"
	@echo "make cuda      build/cuda: the program with CUDA for every card from Ampere on (CARDS=90a: Hopper alone, which is"
	@echo "               quicker), and the tests that need a device"
	@echo "make aarch64   build/aarch64: the program for 64-bit Arm, cross-compiled, its tests under qemu, and its results beside"
	@echo "               those of this machine"
	@echo "make clean     remove build/"

demo:
	scripts/setup build demo
	cmake --preset release --log-level=WARNING $(launcher)
	cmake --build build -j $(JOBS) --target fairway
	scripts/demo

# Ends with the summary of the full run.
test:
	scripts/setup build lint
	scripts/check-format
	@$(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory sanitize
	@$(MAKE) --no-print-directory cuda-objects
	ctest --test-dir build -j $(JOBS) --output-on-failure --no-tests=error

build:
	cmake --preset release --log-level=WARNING $(launcher)
	cmake --build build -j $(JOBS)

# Honours DESTDIR, as packagers expect.
install:
	scripts/setup build
	cmake --preset release --log-level=WARNING $(launcher)
	cmake --build build -j $(JOBS) --target fairway fairway-shared
	cmake --install build --prefix $(PREFIX)

package:
	scripts/setup build
	cmake --preset release --log-level=WARNING $(launcher)
	cmake --build build -j $(JOBS) --target fairway fairway-shared fairway-portable fairway-shared-portable
	scripts/package build

package-cuda:
	scripts/setup build
	scripts/setup-cuda
	@test -n "$(nvcc)" || { echo "make package-cuda: no nvcc on PATH; install the CUDA toolkit (13.0)"; exit 1; }
	cmake --preset cuda --log-level=WARNING $(launcher) -DFAIRWAY_CUDA_ARCHITECTURES=$(CARDS)
	cmake --build build/cuda -j $(JOBS) --target fairway fairway-portable
	scripts/package build/cuda

# Compiles the Python module alone; everything else in it is that of make package. Needs python3 with venv and headers, and PyPI.
wheel:
	scripts/setup build
	cmake --preset release --log-level=WARNING $(launcher)
	cmake --build build -j $(JOBS) --target fairway fairway-shared fairway-portable fairway-shared-portable
	scripts/wheel build

sanitize:
	cmake --preset debug --log-level=WARNING $(launcher)
	cmake --build build/debug -j $(JOBS) --target $(sanitized:%=%_test)
	ctest --test-dir build/debug -j $(JOBS) --output-on-failure --no-tests=error -L '$(call labels,$(sanitized))'

tsan:
	cmake --preset tsan --log-level=WARNING $(launcher)
	cmake --build build/tsan -j $(JOBS) --target $(threaded:%=%_test)
	ctest --test-dir build/tsan -j $(JOBS) --output-on-failure --no-tests=error -L '$(call labels,$(threaded))'

# What make test samples, whole. FAIRWAY_TORTURE_PART=1/4 takes the first of four parts; --gtest_filter=*Train* a command.
torture:
	cmake --preset release --log-level=WARNING $(launcher)
	cmake --build build -j $(JOBS) --target fairway faults_test
	FAIRWAY_TORTURE=all build/bin/faults_test

sbom:
	cmake --preset release --log-level=WARNING $(launcher)
	cmake --build build -j $(JOBS) --target fairway
	scripts/sbom build >build/fairway.spdx.json

bench: build
	build/bin/fairway bench ops
	build/bin/fairway bench step --recipe demo

lint:
	scripts/setup build lint
	scripts/check-format
	@$(MAKE) --no-print-directory build
	cmake --preset release -B build/lint -DFAIRWAY_UNITY=OFF --log-level=WARNING
	scripts/check-tidy build/lint
	build/bin/layering_test --gtest_brief=1

format:
	scripts/check-format --fix

# Everything that is compiled otherwise for CUDA, for one architecture, and the tests of its ops, which skip where no device is.
# Part of make test on machines with the toolkit.
cuda-objects:
ifeq ($(nvcc),)
	@echo "make test: CUDA code is not compiled here, no nvcc was found (the CUDA toolkit, 13.0, brings it)"
else
	scripts/setup-cuda
	cmake --preset cuda --log-level=WARNING $(launcher) -DFAIRWAY_CUDA_ARCHITECTURES=90a
	cmake --build build/cuda -j $(JOBS) --target fairway_tensor fairway_autograd fairway_comm ops_cuda_test
	ctest --test-dir build/cuda -L ops_cuda --output-on-failure --no-tests=error
endif

cuda:
	scripts/setup build
	scripts/setup-cuda
	@test -n "$(nvcc)" || { echo "make cuda: no nvcc on PATH; install the CUDA toolkit (13.0)"; exit 1; }
	cmake --preset cuda --log-level=WARNING $(launcher) -DFAIRWAY_CUDA_ARCHITECTURES=$(CARDS)
	cmake --build build/cuda -j $(JOBS) --target fairway ops_cuda_test
	ctest --test-dir build/cuda -L ops_cuda --output-on-failure --no-tests=error
	FAIRWAY_CUDA_PATH=generic ctest --test-dir build/cuda -L ops_cuda --output-on-failure --no-tests=error

aarch64:
	scripts/setup-aarch64
	cmake --preset release --log-level=WARNING $(launcher)
	cmake --build build -j $(JOBS) --target fairway
	cmake --preset aarch64 --log-level=WARNING $(launcher)
	cmake --build build/aarch64 -j $(JOBS) --target fairway golden_test $(crossed:%=%_test)
	ctest --test-dir build/aarch64 -j $(JOBS) --output-on-failure --no-tests=error -L '$(call labels,$(crossed))'
	QEMU_CPU=cortex-a57 ctest --test-dir build/aarch64 -j $(JOBS) --output-on-failure --no-tests=error -R PackedRows
	ctest --test-dir build/aarch64 --output-on-failure --no-tests=error -R '^Golden.*EveryInstructionSet$$'
	scripts/check-aarch64

clean:
	rm -rf build
