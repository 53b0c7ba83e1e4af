# SPDX-License-Identifier: BSD-3-Clause
# Daily work in one word; CMake does it. Every command is printed before it runs.
PREFIX ?= /usr/local
BUILD := build/release

.PHONY: all fatbin check matrix device-matrix benches bench bench-net bench-overlap plan-table install clean format

# What is installed, made with what scripts/setup installs. Tests and benchmarks need more:
# who asks for them has it installed.
all: $(BUILD)/build.ninja
	cmake --build --preset release --target tutti_installed

$(BUILD)/build.ninja:
	cmake --preset release -DTUTTI_TESTS=OFF -DTUTTI_BENCH=OFF

# The kernels of GPUs alone, by nvcc.
fatbin: $(BUILD)/build.ninja
	cmake $(BUILD) -DTUTTI_CUDA=ON
	cmake --build --preset release --target tutti_fatbin

check:
	scripts/check

# Every call that the matrix of tests knows; the check runs a sample of them.
matrix: all
	scripts/setup check
	cmake -B $(BUILD) -DTUTTI_TESTS=ON
	cmake --build --preset release --target world_matrix
	TEST_CASES=all $(BUILD)/tests/world_matrix

# Every algorithm by device programs; the check runs a sample of them.
device-matrix: all
	scripts/setup check
	cmake -B $(BUILD) -DTUTTI_TESTS=ON
	cmake --build --preset release --target unit_device_matrix
	TEST_CASES=all $(BUILD)/tests/unit_device_matrix

benches: all
	scripts/setup bench
	cmake -B $(BUILD) -DTUTTI_BENCH=ON
	cmake --build --preset release

bench: benches
	$(BUILD)/bench/bench_topo
	$(BUILD)/bench/bench_cluster
	$(BUILD)/bench/bench_plan
	bench/compare/run

# Needs root, for network namespaces.
bench-net: benches
	bench/net/run

# What of a call hides behind computation; needs root, for network namespaces.
bench-overlap: benches
	bench/overlap/run

plan-table: all
	scripts/plan_table

install: all
	DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)
	-test -n "$(DESTDIR)" || ldconfig

clean:
	rm -rf build

format:
	clang-format -i $$(scripts/list_files '\.(c|h|cc|cpp|cu)$$')
