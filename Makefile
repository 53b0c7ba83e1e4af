# SPDX-License-Identifier: BSD-3-Clause
# Daily work in one word; CMake does it. Every command is printed before it runs.
PREFIX ?= /usr/local
BUILD := build/release

.PHONY: all check matrix bench bench-net bench-overlap plan-table install clean format

all: $(BUILD)/build.ninja
	cmake --build --preset release

$(BUILD)/build.ninja:
	cmake --preset release

check:
	scripts/check

# Every call that the matrix of tests knows; the check runs a sample of them.
matrix: all
	TEST_CASES=all $(BUILD)/tests/world_matrix

bench: all
	scripts/setup bench
	$(BUILD)/bench/bench_topo
	$(BUILD)/bench/bench_cluster
	$(BUILD)/bench/bench_plan
	bench/compare/run

# Needs root, for network namespaces.
bench-net: all
	scripts/setup bench
	bench/net/run

# What of a call hides behind computation; needs root, for network namespaces.
bench-overlap: all
	scripts/setup bench
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
