#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The examples run and find their own results right. BUILD is the build tree.
. "$(dirname "$0")/common"
examples=${BUILD:?}/examples
[ -d "$examples" ] || {
	echo "there is no $examples"
	exit 77
}

for n in 1 2 5; do
	expect 0 "$TUTTI" run -n $n "$examples/01_hello_all_reduce"
	lines out $n
	says out "^rank $((n - 1)) of $n: .*, right$"
	expect 0 "$examples/02_threads" $n
	says out "^$n threads, $n broadcasts: right$"
	expect 0 "$TUTTI" run -n $n "$examples/03_streams"
	lines out $n
	expect 0 "$TUTTI" run -n $n "$examples/04_send_recv_ring"
	lines out $n
	expect 0 "$TUTTI" run -n $n "$examples/06_handoff"
	lines out $(((n + (n == 1)) / 2))
	says out "^rank $((n - 1)) of $n: elements [0-9]+ to 100002, 0 wrong$"
	expect 0 "$TUTTI" run -n $n "$examples/08_overlap"
	lines out $n
	says out "^rank $((n - 1)) of $n: 262144 weights, 0 wrong$"
	ok "$n ranks"
done

for n in 4 5 7; do
	expect 0 "$examples/07_survive" $n
	[ "$(grep -c "the end: $((n - 2)) ranks, .*, right$" "$tmp/out")" -eq $((n - 2)) ] ||
		fail "not all that are left trained on"
	ok "$n ranks, two of them killed"
done

expect 0 "$examples/05_topology"
says out '^(HOST|GPU)0: '
expect 0 "$examples/05_topology" "$(dirname "$0")/../data/topologies/azhpc-images__ndv4-topo.xml"
lines out 8
says out '^GPU7: mlx5_6, PIX, 24.0 GB/s, as the wires run$'
expect 1 "$examples/05_topology" /nonexistent
says err '/nonexistent'
ok "a topology"

expect 1 env -u TUTTI_RANK -u TUTTI_NRANKS "$examples/01_hello_all_reduce"
says err 'tutti_comm_init_env: .'
ok "without a launcher it says what is missing"
