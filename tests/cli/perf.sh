#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# perf measures and checks every collective, between processes and threads, prints the
# table of nccl-tests and JSON, and leaves nothing behind.
. "$(dirname "$0")/common"

# No row of $tmp/out has a wrong element; there are $1 rows.
rows_are_right()
{
	awk -v wanted="$1" '
		/^ *[0-9]+ +[0-9]+ +[a-z]/ {
			rows++
			if (NF != 13 || $9 != 0 || ($13 != 0 && $13 != "N/A"))
				bad = bad "\n" $0
		}
		/^# Out of bounds values : 0 OK$/ { fine++ }
		/^# Avg bus bandwidth    : [0-9.e+-]+ *$/ { fine++ }
		END {
			if (bad)
				print "bad rows:" bad
			if (rows != wanted || fine != 2)
				print rows + 0 " rows, " fine + 0 " trailers"
			exit bad || rows != wanted || fine != 2
		}' "$tmp/out" || fail "the table is not right"
}

for how in '' --threads; do
	for collective in $collectives; do
		rows=5
		[ "$collective" = barrier ] && rows=1
		expect 0 "$TUTTI" perf "$collective" -n 3 -b 64 -e 4M -f 16 -i 2 $how
		rows_are_right $rows
		ok "$collective, 3 ranks $how"
	done
done

# Ranks that leave one after the other do not miss those that have left.
for round in 1 2 3; do
	expect 0 env TUTTI_TRANSPORT=tcp "$TUTTI" perf broadcast -n 4 -b 8 -e 64K
	! grep WARN "$tmp/err" || fail "who has left is missed"
done
ok "a broadcast over TCP, and no warning at its end"

for collective in all_to_all_v gather_v scatter_v all_gather_v reduce_scatter_v; do
	expect 0 "$TUTTI" perf "$collective" -n 3 -b 64K -e 64K -i 2 --buffers registered
	rows_are_right 1
	says out ' 0 +[0-9.]+ +[0-9.]+ +[0-9.]+ +0 *$'
done
ok "in place, with a count for each rank, too"

expect 0 "$TUTTI" perf all_reduce -n 2 -b 8 -e 8 -i 1
for line in '# Collective test starting: all_reduce_perf' \
	'# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2\(factor\) warmup iters: 5 iters: 1 ' \
	'# Using devices' '#  Rank  0 Group  0 Pid +[0-9]+ on +[^ ]+ device  0 ' \
	'#  Rank  1 ' \
	'# +size +count +type +redop +root +time +algbw +busbw +#wrong +time +algbw +busbw +#wrong' \
	'# +\(B\) +\(elements\) +\(us\) +\(GB/s\) +\(GB/s\) +\(us\) +\(GB/s\) +\(GB/s\)' \
	'           8             2     float     sum      -1  '; do
	says out "^$line"
done
ok "the table has the lines of nccl-tests"

number='[0-9.e+-]+'
result="\{\"time_us\":$number,\"algbw_gbps\":$number,\"busbw_gbps\":$number,\"wrong\":0\}"
expect 0 "$TUTTI" perf reduce -n 2 -b 1K -e 2K -d int32 -o max -r 1 --json -i 5
lines out 2
says out "^\{\"collective\":\"reduce\",\"nranks\":2,\"bytes\":1024,\"count\":256,\
\"type\":\"int32\",\"op\":\"max\",\"root\":1,\"out_of_place\":$result,\"in_place\":$result,\
\"algorithm\":\"[a-z_0-9]+\",\"channels\":[0-9]+,\"transport\":\"[a-z+]+\"\}$"
lines err 0
ok "a line of JSON per size"

expect 0 "$TUTTI" perf all_reduce -n 3 -b 1M -e 1M -d half --json -i 5 --reproducible
says out '"op":"sum".*"wrong":0.*"algorithm":"direct".*,"reproducible":true\}$'
expect 0 "$TUTTI" perf reduce_scatter -n 3 -b 1M -e 1M -i 5 --reproducible
says out '^# Reductions are reproducible$'
expect 1 env TUTTI_ALGO=all_reduce:ring "$TUTTI" perf all_reduce -n 2 -e 64 -b 64 --reproducible
says err 'leaves no algorithm for all_reduce of 2 ranks that reduces in the order'
ok "reproducible reductions"

expect 0 "$TUTTI" perf all_reduce -n 3 -b 100 -e 100 -d all -o all -i 1 -w 0
rows_are_right 134
ok "all types, all operations"

expect 0 "$TUTTI" perf reduce_scatter -n 5 -b 40K -e 40K -d all -o all -i 1 -w 0 --threads
rows_are_right 134
ok "all types, all operations, threads"

expect 0 "$TUTTI" perf all_gather -n 2 -b 1 -e 16 -i 1
rows_are_right 2
ok "sizes that come to the same are measured once"

expect 0 "$TUTTI" perf all_reduce -n 2 -b 8 -e 8 -i 1 -c 0
says out 'N/A .* N/A$'
ok "what was not checked is not called right"

expect 0 "$TUTTI" perf all_reduce -n 1 -b 8 -e 1M -f 64 -i 1
rows_are_right 3
ok "one rank"

for transport in shm tcp; do
	expect 0 "$TUTTI" perf all_reduce -n 2 -b 64K -e 64K -i 2 --transport $transport --json
	says out "\"transport\":\"$transport\""
	TUTTI_TRANSPORT=auto
	export TUTTI_TRANSPORT
	expect 0 "$TUTTI" perf all_reduce -n 2 -b 64K -e 64K -i 2 --transport $transport --json
	says out "\"transport\":\"$transport\""
	unset TUTTI_TRANSPORT
	ok "--transport $transport, also against the environment"
done

for collective in all_reduce broadcast all_gather; do
	for algorithm in $("$TUTTI" show "$collective"); do
		# Memory programs are for buffers that all ranks reach.
		buffers=plain
		[ "$algorithm" != memory ] || buffers=registered
		expect 0 "$TUTTI" perf "$collective" -n 3 -b 48K -e 48K -i 2 \
			--buffers $buffers --algorithm "$algorithm" --json
		says out "\"wrong\":0.*\"algorithm\":\"$algorithm\""
	done
	ok "every algorithm of $collective"
done

for sides in '--from 0 --to 1-2' '--from 2,0 --to 1' '--to 0-2'; do
	for sharded in '' '--sharded from' '--sharded to' '--sharded both'; do
		expect 0 "$TUTTI" perf handoff -n 3 -b 5 -e 1M -f 13 -d int8 -i 1 $sides $sharded
		rows_are_right 5
	done
done
ok "handoffs between any sides"

for ranks in 3- 1-0 a 0,,1 -1 70000 ''; do
	expect 2 "$TUTTI" perf handoff -n 2 --from "$ranks"
	says err "is no list of ranks|needs a value"
done
expect 2 "$TUTTI" perf handoff -n 2 --sharded here
says err "--sharded 'here': choose from, to or both"
expect 1 "$TUTTI" perf handoff -n 2 --to 0-2
says err 'to->n is 3: a side has 1 to 2 ranks'
ok "sides that are none"

# Each error is seen once, whoever noticed it.
expect 1 env TUTTI_TRANSPORT=none "$TUTTI" perf all_reduce -n 2 -e 8
says err 'unknown transport "none"'
lines err 1
expect 1 "$TUTTI" perf handoff -n 1 --to 0-1
says err '^tutti perf: rank 0: handoff: to->n is 2'
lines err 1
ok "errors are seen once"

expect 0 "$TUTTI" perf all_reduce -n 2 -b 8 -e 16 -i 1 -v
[ "$(grep -c '^#  [a-z_]* over [a-z]*, [0-9]* channel' "$tmp/out")" = 2 ] ||
	fail "-v does not show the algorithm of each line"
ok "-v"

expect 0 "$TUTTI" run -n 3 -- "$TUTTI" perf all_reduce -b 1K -e 1K -i 2
rows_are_right 1
says out 'Rank  2 '
ok "as the ranks of a launcher"

# start_endless: perf with 3 ranks that are in the middle of it.
start_endless()
{
	: >"$tmp/out" # what came before is not what we wait for
	"$TUTTI" perf all_reduce -n 3 -b 8 -e 8 -i 2000000000 >"$tmp/out" 2>"$tmp/err" &
	perf=$!
	eventually grep -q '^#  *size' "$tmp/out"
	ranks=$(children $perf)
}

# A rank is killed: the others are ended, and it is named.
start_endless
victim=$(echo "$ranks" | cut -d' ' -f2)
kill -KILL "$victim"
status=0
wait $perf || status=$?
[ $status = 1 ] || fail "a killed rank gave exit code $status"
says err "rank 1 .*$victim.* signal 9"
for pid in $ranks; do
	has_ended "$pid" || fail "rank $pid is still there"
done
ok "a rank that is killed"

# We are interrupted, as with Ctrl-C.
start_endless
kill -TERM $perf
status=0
wait $perf || status=$?
[ $status = 143 ] || fail "SIGTERM gave exit code $status"
for pid in $ranks; do
	has_ended "$pid" || fail "rank $pid is still there"
done
ok "being interrupted"
