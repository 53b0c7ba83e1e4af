#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# bench/compare: every operation is measured, beside no other library, and its points add up.
. "$(dirname "$0")/common"
root=$(cd "$(dirname "$0")/../.." && pwd)

# Its programs are compiled without sanitizers, which a library with them does not stand.
if nm -D "$BUILD/src/libtutti.so" | grep -Eq ' U __(a|t)san_'; then
	echo "the library has sanitizers"
	exit 77
fi

expect 2 "$root/bench/compare/run" --operations all_reduce,allreduce
says err "there is no operation 'allreduce': choose of all_reduce, .*, barrier"
ok "an operation that there is not"
expect 2 "$root/bench/compare/run" --sizes 2
says err "'2' is no size"
ok "a size that is too small"

expect 0 "$root/bench/compare/run" --build-dir "$BUILD" --peers none --ranks 3 --sizes 8,1K \
	--rounds 1 --seconds 0.001 --json "$tmp/points"
says out '^all +0 +- +0 +-$'
python3 - "$tmp/points" <<'END' || fail "the points"
import json, sys

about, *points = [json.loads(line) for line in open(sys.argv[1])]
assert "tutti" in about["about"]["versions"], about
keys = [(p["operation"], p["nranks"], p["bytes"]) for p in points]
blocks = ["all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]
assert keys == [(o, 3, b) for o in blocks for b in (8, 1024)] + [("barrier", 3, 0)], keys
for point in points:
    assert set(point["us"]) == {"tutti", "tutti-mem"}, point
    assert all(us > 0 for us in point["us"].values()), point
    assert point["best_peer"] is None and point["peer_over_tutti"] is None, point
END
ok "every operation"
