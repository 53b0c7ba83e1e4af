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
says out '^\| all \| - \| - \| 0 \| 0 \| - \|'
expect 0 "$root/bench/compare/table" --points "$tmp/points"
python3 - "$tmp/points" "$tmp/out" <<'END' || fail "the points"
import json, sys

blocks = ["all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]
want = sorted([(m, o, 3, b) for m in ("rewritten", "unchanged") for o in blocks for b in (8, 1024)] +
              [(m, "barrier", 3, 0) for m in ("rewritten", "unchanged")])


def read(path):
    about, *points = [json.loads(line) for line in open(path)]
    assert "tutti" in about["about"]["versions"], about
    keys = [(p["mode"], p["operation"], p["nranks"], p["bytes"]) for p in points]
    assert sorted(keys) == want, keys
    return points


for round in read(sys.argv[1]):
    assert round["round"] == 0 and set(round["us"]) == {"tutti", "tutti-mem"}, round
for point in read(sys.argv[2]):
    assert set(point["us"]) == {"tutti", "tutti-mem"}, point
    assert all(us > 0 for us in point["us"].values()), point
    assert point["best_peer"] is None and point["peer_over_tutti"] is None, point
END
ok "every operation"

# Two points, of which the best peer takes half and twice the time: their mean is 1.
cat >"$tmp/two" <<'END'
{"about": {"machine": "a machine"}}
{"operation": "all_reduce", "nranks": 2, "bytes": 8, "us": {"tutti": 2, "tutti-mem": 4, "gloo": 1}, "best_peer": "gloo", "peer_over_tutti": 0.5, "tutti_over_registered": 0.5}
{"operation": "all_reduce", "nranks": 2, "bytes": 1048576, "us": {"tutti": 3, "tutti-mem": 1, "gloo": 6}, "best_peer": "gloo", "peer_over_tutti": 2.0, "tutti_over_registered": 3.0}
END
expect 0 "$root/bench/compare/table" "$tmp/two"
says out '^\| unchanged \| 2 \| 0\.50, all_reduce 8 B on 2 ranks \| 0\.95 \| 1 \| 1\.00 \| 1\.6 \| no \|$'
says out '^\| all \| 1\.00 \| 1\.00 \| 2 \| 1 \| - \| 3\.00 \|$'
says out '^\| 1 MB \| 3\.00 / 1\.00 \| 6\.00 Gloo \| 2\.00 \|$'
printf '%s\n' 'before' '<!-- bench/compare/table writes what follows -->' '<!-- up to here -->' >"$tmp/document"
expect 1 "$root/bench/compare/table" "$tmp/two" --check "$tmp/document"
expect 0 "$root/bench/compare/table" "$tmp/two" --write "$tmp/document"
grep -q '^before$' "$tmp/document" || fail "what stood before the tables is gone"
expect 0 "$root/bench/compare/table" "$tmp/two" --check "$tmp/document"
expect 0 "$root/bench/compare/plot" "$tmp/two" -o "$tmp/svg"
expect 0 "$root/bench/compare/plot" "$tmp/two" -o "$tmp/svg" --check
ok "a picture and tables of two points"

sed -i 's/"peer_over_tutti": 2.0/"peer_over_tutti": 2.5/' "$tmp/two"
expect 1 "$root/bench/compare/plot" "$tmp/two" -o "$tmp/svg" --check
says err 'is not what bench/compare/plot draws'
expect 1 "$root/bench/compare/table" "$tmp/two" --check "$tmp/document"
says err "$tmp/document"
echo '{"operation": "barrier"}' >>"$tmp/two"
expect 1 "$root/bench/compare/plot" "$tmp/two" -o "$tmp/svg"
says err 'two:4: nothing that bench/compare/run writes'
ok "a picture and tables that are of other points"
