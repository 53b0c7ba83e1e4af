#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# ping measures each pair once, over memory and over TCP, as a table and as JSON, and names
# the rank that dies. What it finds on a busy machine is not for a test: 0 and 1 are right.
. "$(dirname "$0")/common"

# measures ARGUMENTS...: ping ends with 0, or with 1 and a finding in its output.
measures()
{
	finds_at_most ping "$@"
	lines err 0
}

# finds_at_most COMMAND...: so does this one of tutti.
finds_at_most()
{
	status=0
	timeout 300 "$TUTTI" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || status=$?
	[ $status = 0 ] || { [ $status = 1 ] && grep -Eq 'error|warning' "$tmp/out"; } ||
		fail "exit code $status: $*"
}

number='[0-9.e+-]+'
measures -n 2 --seconds 0.1
says out '^# ping of 2 ranks on 1 host: 1 pair in 1 round$'
says out "^   0    1    0  memory +memory +- +$number +$number +$number +$number +$number\+$number\$"
[ "$(grep -c '^ ' "$tmp/out")" -ge 1 ] && ! grep -q 'GB/s from the rank' "$tmp/out" ||
	fail "two ranks need no matrix"
ok "two ranks on one host"

measures -n 4 --seconds 0.02
says out '^# ping of 4 ranks on 1 host: 6 pairs in '
[ "$(grep -Ec '^   [0-3]    [0-3]    0  memory' "$tmp/out")" -eq 6 ] || fail "not six pairs"
says out "^#    0       \. +$number +$number +$number\$"
says out "^#    3 +$number +$number +$number       \.\$"
ok "four ranks, with a matrix"

# pairs_are_once N: the objects in $tmp/out are those of all pairs of N ranks.
pairs_are_once()
{
	python3 - "$1" "$tmp/out" <<-'END' || fail "not each pair once"
		import json, sys
		n = int(sys.argv[1])
		objects = [json.loads(line) for line in open(sys.argv[2])]
		pairs = [o for o in objects if "a" in o]
		assert sorted((p["a"], p["b"]) for p in pairs) == \
		    [(a, b) for a in range(n) for b in range(a + 1, n)], pairs
		for pair in pairs:
		    for m in [pair["together"]] + pair["lanes"]:
		        assert m["measured"] and m["ab_gbps"] > 0 and m["ba_gbps"] > 0, pair
		        assert 0 < m["rtt_least_us"] <= m["rtt_us"] <= m["rtt_p99_us"], pair
		    for f in pair["findings"]:
		        assert f["rule"] and f["what"] and f["remedy"], pair
		assert len(objects) - len(pairs) <= 1
	END
}

for n in 2 3 4 5; do
	measures -n $n --transport tcp --seconds 0.02 --json
	pairs_are_once $n
	measures -n $n --seconds 0.02 --json
	pairs_are_once $n
done
ok "JSON, each pair once"

measures -n 5 --transport tcp --seconds 0.02
says out '^# ping of 5 ranks on 5 hosts: 10 pairs in 5 rounds$'
ok "no host is in two pairs of a round"

measures -n 4 --peer 3,1 --seconds 0.05 --bytes 1M
says out ': 1 pair in 1 round$'
says out '^   3    1    0  memory'
lines err 0
ok "one pair of many"

measures -n 3 --transport tcp --ranks hosts --seconds 0.02
says out ': 3 pairs in 3 rounds$'
status=0
"$TUTTI" ping -n 3 --ranks hosts >"$tmp/out" 2>"$tmp/err" || status=$?
[ $status = 2 ] || fail "--ranks hosts on one host gave exit code $status"
says err 'all ranks are on one host: --ranks all'
ok "--ranks"

finds_at_most run -n 2 -- "$TUTTI" ping --seconds 0.05 --json
pairs_are_once 2
status=0
"$TUTTI" run -n 2 -- "$TUTTI" ping --peer 0,2 >"$tmp/out" 2>"$tmp/err" || status=$?
[ $status = 2 ] || fail "--peer of no rank gave exit code $status"
says err '--peer 0,2: there are ranks 0 to 1'
[ "$(grep -c 'there are ranks' "$tmp/err")" -eq 1 ] || fail "said more than once"
status=0
"$TUTTI" run -n 1 -- "$TUTTI" ping >"$tmp/out" 2>"$tmp/err" || status=$?
[ $status = 2 ] || fail "one rank gave exit code $status"
says err 'nothing between'
ok "as the ranks of a launcher"

# A rank is killed in the middle of it: the others end, and it is named.
for transport in shm tcp; do
	: >"$tmp/out" # what came before is not what we wait for
	"$TUTTI" ping -n 3 --transport $transport --seconds 100 >"$tmp/out" 2>"$tmp/err" &
	ping=$!
	eventually grep -q '^#  a ' "$tmp/out"
	ranks=$(children $ping)
	victim=$(echo "$ranks" | cut -d' ' -f2)
	kill -KILL "$victim"
	status=0
	wait $ping || status=$?
	[ $status = 1 ] || fail "a killed rank gave exit code $status"
	says err "rank 1 .*$victim.* signal 9"
	for pid in $ranks; do
		has_ended "$pid" || fail "rank $pid is still there"
	done
	ok "a rank that is killed, $transport"
done
