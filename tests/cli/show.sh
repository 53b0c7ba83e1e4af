#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# show: what it prints, --check reads and proves; what is broken, it refuses.
. "$(dirname "$0")/common"

for collective in $collectives; do
	expect 0 "$TUTTI" show "$collective"
	algorithms=$(cat "$tmp/out")
	expect 0 "$TUTTI" show "$collective" --json
	for algorithm in $algorithms; do
		says out "^\{\"collective\":\"$collective\",\"algorithm\":\"$algorithm\"\}$"
		for nranks in 1 4 7; do
			status=0
			"$TUTTI" show "$collective" --algorithm "$algorithm" -n $nranks \
				>"$tmp/program" 2>"$tmp/err" || status=$?
			# An algorithm may not be there for every number of ranks.
			[ $status = 2 ] && continue
			[ $status = 0 ] || fail "show "$collective" $algorithm -n $nranks: $status"
			status=0
			"$TUTTI" show --check "$tmp/program" >"$tmp/err" 2>&1 ||
				fail "$collective $algorithm -n $nranks is not proven"
		done
		"$TUTTI" show "$collective" --algorithm "$algorithm" -n 4 --json >"$tmp/json" ||
			fail "$collective $algorithm -n 4 --json"
		head -c 1 "$tmp/json" | grep -q '[[{]' || fail "that is no JSON"
		"$TUTTI" show "$collective" --algorithm "$algorithm" -n 4 --rank 1 >"$tmp/one" ||
			fail "$collective $algorithm -n 4 --rank 1"
		ok "$collective $algorithm"
	done
done

for collective in $collectives; do
	expect 0 "$TUTTI" show "$collective"
	if [ -s "$tmp/out" ]; then
		says out '^memory$'
	else
		says err "^$collective has no algorithms of its own: ."
	fi
done
expect 0 "$TUTTI" show send_recv
says out '^memory$'
expect 0 "$TUTTI" show handoff --algorithm memory -n 4
says out '^    input chunk 3$'
says out '^ *[0-9]+ put chunk [0-9] to [23]$'
sed '/output chunk 0/d' "$tmp/out" >"$tmp/program"
expect 1 "$TUTTI" show --check "$tmp/program"
for collective in all_to_all_v gather_v scatter_v; do
	expect 0 "$TUTTI" show $collective
	says err 'it runs those of send_recv'
done
ok "each collective has a memory program, or says what it runs"

for hosts in 1 4,4 3,2,1 1,1,1,1,1; do
	for collective in all_reduce broadcast reduce all_gather reduce_scatter; do
		"$TUTTI" show $collective --algorithm hierarchical --hosts $hosts >"$tmp/program" ||
			fail "$collective hierarchical --hosts $hosts"
		"$TUTTI" show --check "$tmp/program" >"$tmp/err" 2>&1 ||
			fail "$collective hierarchical --hosts $hosts is not proven"
	done
done
"$TUTTI" show all_reduce --algorithm hierarchical -n 8 --hosts 4,4 >"$tmp/hosts"
"$TUTTI" show all_reduce --algorithm hierarchical -n 8 >"$tmp/one"
cmp -s "$tmp/hosts" "$tmp/one" && fail "--hosts changes nothing"
expect 2 "$TUTTI" show all_reduce --algorithm hierarchical -n 7 --hosts 4,4
says err 'has 8 ranks'
for hosts in , 4, 0,4 4,x -4 99999999999 4x,4; do
	expect 2 "$TUTTI" show all_reduce --algorithm hierarchical --hosts "$hosts"
	says err 'like 4,4,2'
done
ok "programs over several hosts"

"$TUTTI" show all_reduce --algorithm ring -n 4 >"$tmp/program"
expect 0 "$TUTTI" show --check "$tmp/program"
says out 'proven'
expect 0 "$TUTTI" show --check "$tmp/program" --json
says out '"ok":true,"reason":null,"algorithm":\{"name":"ring","collective":"all_reduce","ranks":4,'
"$TUTTI" show --check - <"$tmp/program" >/dev/null || fail "standard input is not read"
ok "a good program"

# Each step in turn is taken away: not one of these programs is right.
total=$(wc -l <"$tmp/program")
dropped=0
line=1
while [ $line -le "$total" ]; do
	if sed -n "${line}p" "$tmp/program" | grep -Eiq 'send|recv|copy|reduce .*[0-9]'; then
		sed "${line}d" "$tmp/program" >"$tmp/broken"
		if "$TUTTI" show --check "$tmp/broken" >"$tmp/out" 2>"$tmp/err"; then
			sed -n "${line}p" "$tmp/program" >"$tmp/err"
			fail "without line $line the program was still called right"
		fi
		dropped=$((dropped + 1))
	fi
	line=$((line + 3))
done
[ $dropped -gt 3 ] || fail "only $dropped lines looked like steps"
expect 1 "$TUTTI" show --check "$tmp/broken"
says err 'rank [0-9]+|line [0-9]+'
expect 1 "$TUTTI" show --check "$tmp/broken" --json
says out '"ok":false,"reason":"[^"]'
ok "$dropped broken programs are refused with a reason"

echo 'this is no program' >"$tmp/garbage"
expect 1 "$TUTTI" show --check "$tmp/garbage"
says err 'line 1'
: >"$tmp/empty"
expect 1 "$TUTTI" show --check "$tmp/empty"
ok "what is no program at all is refused"

# MSCCL's form: what is right, what it does, and where it is wrong. The example is that of
# docs/algorithms.md.
sed -n '/^    <algo/,/^    <.algo>/s/^    //p' "$(dirname "$0")/../../docs/algorithms.md" >"$tmp/pair.xml"
expect 0 "$TUTTI" show --check "$tmp/pair.xml" --bytes 64K
says out 'proven'
says out '^pair: all_reduce of 2 ranks, 2 chunks, root 0, for 0 to 1048576 bytes$'
says out '^steps      8, at most 4 of a rank$'
says out '^of 65536 bytes: at most 65536 sent by a rank, 65536 over each of 2 links; predicted [0-9.]+ us'
says out '^  1 -> 0  65536$'
expect 0 "$TUTTI" show --check "$tmp/pair.xml" --bytes 64K --json
says out '"links":\[\{"from":0,"to":1,"bytes":65536\},\{"from":1,"to":0,"bytes":65536\}\]'
sed '5s/srcoff="1"/srcoff="2"/' "$tmp/pair.xml" >"$tmp/broken"
expect 1 "$TUTTI" show --check "$tmp/broken"
says err 'broken:5:[0-9]+: <step>: srcoff 2 and cnt 1 are out of range'
export TUTTI_ALGO_FILE="$tmp/pair.xml"
expect 0 "$TUTTI" perf all_reduce -n 2 -b 1K -e 1K -i 20 --json
says out '"algorithm":"pair"'
expect 0 "$TUTTI" perf all_reduce -n 2 -b 2M -e 2M -i 5 --json
says out '"algorithm":"[a-z_]+"'
grep -q '"algorithm":"pair"' "$tmp/out" && fail "a file is used beyond its sizes"
unset TUTTI_ALGO_FILE
ok "algorithms in MSCCL's form"
