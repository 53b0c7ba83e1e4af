#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# tune: predicted times, what is taken, and the file of constants and choices.
. "$(dirname "$0")/common"
here=$(cd "$(dirname "$0")/.." && pwd)
ndv5=$here/data/topologies/azhpc-images__ndv5-topo.xml
unset TUTTI_TUNE_FILE TUTTI_ALGO TUTTI_TOPO_FILE TUTTI_SYSFS_ROOT NCCL_TOPO_FILE

# bad PATTERN ARGUMENTS...: bad usage that is named
bad()
{
	pattern=$1
	shift
	expect 2 "$TUTTI" "$@"
	says err "$pattern"
	lines out 0
	ok "$*"
}

# Every row of a table has one mark.
one_mark_a_row()
{
	awk '/ (B|KiB|MiB|GiB) / { rows++; if (gsub(/\*/, "*") != 1) exit 1 }
		END { exit rows != '"$1"' }' "$tmp/out" || fail "not $1 rows with one * each"
}

expect 0 "$TUTTI" tune --table
says out '^1 node, '
one_mark_a_row 81
expect 0 "$TUTTI" tune --table --nodes 3 --ranks 2 --xml "$ndv5" --host
says out '^3 nodes, 6 ranks in host memory;'
says out ' hierarchical '
one_mark_a_row 81
expect 0 "$TUTTI" tune --table --xml "$ndv5" --nodes 2 --collective all_reduce
says out '^2 nodes, 16 ranks on GPUs .by NCCL.s model; Tutti.s kernels choose by other rules.;'
says out '^ +ring +tree +nvls '
one_mark_a_row 10
ok "tables of host memory and of GPUs"

# Different machines, and their plan from a file.
ndv2=$here/data/topologies/Azure-azhpc-images__ndv2-topo.xml
expect 0 "$TUTTI" plan --xml "$ndv5" --xml "$ndv2:2" --format json -o "$tmp/plan.json"
expect 0 "$TUTTI" tune --table --plan "$tmp/plan.json"
says out '^3 nodes, 24 ranks on GPUs'
cp "$tmp/out" "$tmp/of_file"
expect 0 "$TUTTI" tune --table --xml "$ndv5" --xml "$ndv2:2"
cmp -s "$tmp/out" "$tmp/of_file" || fail "a plan and its file differ"
ok "machines of two kinds, and a plan file"

expect 0 "$TUTTI" tune --table --nodes 2 --json --xml "$ndv5"
lines out 50
says out '^\{"collective":"all_reduce","bytes":8,"algorithm":"[a-z_]+","nodes":2,"ranks":16,'
python3 - "$tmp/out" <<'END' || fail "JSON of times"
import json, math, sys

for line in open(sys.argv[1]):
    row = json.loads(line)
    times = row["predicted"]
    assert row["algorithm"] in times and row["memory"] == "gpu", row
    for time in times.values():
        assert all(math.isfinite(v) and v >= 0 for v in time.values()) and time["us"] > 0, row
        us = time["latency_us"] + row["bytes"] / time["bw_gbps"] / 1e3
        assert abs(us - time["us"]) < 1e-3 * us, row
END
ok "as JSON"

# Between hosts the least time is taken, of all that a communicator there would have. Ordered ones are
# for calls that must keep an order.
expect 0 "$TUTTI" tune --table --nodes 3 --ranks 2 --xml "$ndv5" --host --json
cp "$tmp/out" "$tmp/few"
expect 0 "$TUTTI" tune --table --nodes 2 --xml "$ndv5" --host --json
cat "$tmp/few" >>"$tmp/out"
python3 - "$tmp/out" <<'END' || fail "what is taken between hosts"
import json, sys

taken = set()
for line in open(sys.argv[1]):
    row = json.loads(line)
    times = {name: time["us"] for name, time in row["predicted"].items() if name != "ordered"}
    taken.add((row["collective"], row["algorithm"]))
    assert row["by"] == "predicted", row
    assert times[row["algorithm"]] == min(times.values()), row
assert {("all_reduce", "hierarchical"), ("all_reduce", "recursive_doubling"),
        ("broadcast", "hierarchical")} <= taken, taken
END
ok "between hosts"

# What is printed is read; what it changes shows; a pin comes first.
expect 0 "$TUTTI" tune --file --json
lines out 1
says out '^\{"lines":\["constant call_us '
expect 0 "$TUTTI" tune --file
says out '^constant tcp_hop_us +3.05 '
sed 's/^constant wire_us .*/constant wire_us 1000/' "$tmp/out" >"$tmp/mine"
echo 'choose all_reduce 512 exchange # mine' >>"$tmp/mine"
cp "$tmp/mine" "$tmp/tune"
expect 0 env TUTTI_TUNE_FILE="$tmp/tune" "$TUTTI" tune --file
says out '^constant wire_us +1000 '
says out '^choose all_reduce 512 exchange$'
table="tune --table --collective all_reduce --xml $ndv5 --host --nodes 2 --ranks 1 --json"
# shellcheck disable=SC2086 # words
expect 0 "$TUTTI" $table --tune "$tmp/tune"
says out '"bytes":512,"algorithm":"exchange"'
says out '"bytes":8,.*"latency_us":1[0-9][0-9][0-9]'
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_ALGO=all_reduce:double_tree TUTTI_TUNE_FILE="$tmp/tune" "$TUTTI" $table
says out '"bytes":512,"algorithm":"double_tree"'
ok "a tune file, and a pin"

# A job goes by it, and by one alone.
perf="$TUTTI perf all_reduce -b 64 -e 64 -i 1 -w 1 --json"
echo 'choose all_reduce 64 ring' >"$tmp/tune"
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_TUNE_FILE="$tmp/tune" $perf -n 2
says out '"algorithm":"ring"'
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_TUNE_FILE="$tmp/tune" $perf -n 3 --threads
says out '"algorithm":"ring"'
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_TUNE_FILE="$tmp/tune" TUTTI_ALGO=all_reduce:direct $perf -n 2
says out '"algorithm":"direct"'
echo 'choose all_reduce 64 direct' >"$tmp/tune1"
cp "$tmp/tune" "$tmp/tune0"
expect 1 "$TUTTI" run -n 2 sh -c "TUTTI_TUNE_FILE=$tmp/tune\$TUTTI_RANK exec $perf"
says err 'TUTTI_TUNE_FILE of rank 1 is not that of rank 0'
echo 'choose all_reduce 64 rings' >"$tmp/tune1"
expect 1 "$TUTTI" run --keep-going -n 2 sh -c "TUTTI_TUNE_FILE=$tmp/tune\$TUTTI_RANK exec $perf"
says err 'rank 1: .*tune1:1: there is no algorithm "rings"'
ok "a job by a tune file"

# A line holds for the memory that it names. With figures of its own nothing is tried out again; that
# is said by who may copy at all.
cat >"$tmp/tune" <<'END'
reach call_ns 700
reach copied_64k 9700
reach copied_512k 11850
reach slots_64k 8900
reach slots_512k 9300
choose all_gather inf bruck
choose all_to_all 512K direct ranks 2 reach mapped
END
long="$TUTTI perf -n 2 -b 512K -e 512K -i 1 -w 1 --json"
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_TUNE_FILE="$tmp/tune" $long all_gather --buffers registered
says out '"algorithm":"memory"'
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_TUNE_FILE="$tmp/tune" $long all_to_all --buffers registered
says out '"algorithm":"direct"'
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_TUNE_FILE="$tmp/tune" TUTTI_DEBUG=INFO $long all_gather
if ! grep -q 'may not copy' "$tmp/err"; then
	says out '"algorithm":"memory"'
	says err 'copies 11.8 GB/s and slots carry 9.3, .* takes 700 ns, as measured by `tutti tune`'
fi
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_TUNE_FILE="$tmp/tune" TUTTI_REACH=slots $long all_gather
says out '"algorithm":"bruck"'
ok "lines for one kind of memory, and how it is reached"

# Measuring: what comes out is a tune file of this machine, and is used, by all ranks or none.
short='tune -n 2 -e 8'
limit=240
# What changes from round to round is not kept, unless that is asked for: whether it does is not for
# a test to say.
status=0
# shellcheck disable=SC2086 # words
timeout $limit "$TUTTI" $short >"$tmp/out" 2>"$tmp/err" || status=$?
case $status in
0) says out "^written to $XDG_CACHE_HOME/tutti/tune-" ;;
1)
	says err 'of [0-9]+ times changed from round to round, so nothing is kept: measure again'
	[ ! -e "$XDG_CACHE_HOME/tutti" ] || fail "what was not to be kept is there"
	;;
*) fail "exit code $status of tutti $short" ;;
esac
rm -rf "$XDG_CACHE_HOME"
expect 0 "$TUTTI" env
says out '^no tune file is in force'
short="$short --busy"
# shellcheck disable=SC2086 # words
expect 0 "$TUTTI" $short
says out '^constant +built-in +measured$'
says out '^half of [0-9]+ times are within a factor of [0-9.]+ '
says out "^written to $XDG_CACHE_HOME/tutti/tune-[0-9a-f]{16}$"
kept=$(sed -n 's/^written to //p' "$tmp/out")
for line in 'version [0-9]+\.[0-9]+\.[0-9]+' 'machine .* CPUs, .*Linux .*' 'constant call_us .*'; do
	grep -Eqx "$line" "$kept" || fail "no line '$line' in what was kept"
done
expect 0 env TUTTI_TUNE_FILE=none "$TUTTI" tune --file --tune "$kept"
cmp -s "$tmp/out" "$kept" || fail "what was kept is read as something else"
expect 0 "$TUTTI" env
says out "^$kept is in force"
expect 0 env TUTTI_TUNE_FILE=none "$TUTTI" env
says out '^no tune file is in force'
# shellcheck disable=SC2086 # words
expect 0 "$TUTTI" $short --json -o "$tmp/elsewhere"
python3 - "$tmp/out" "$tmp/elsewhere" <<'END' || fail "JSON of what was measured"
import json, sys

found = json.load(open(sys.argv[1]))
assert found["path"] == sys.argv[2] and isinstance(found["choices"], str)
assert 1 <= found["error_after"] <= found["error_before"], found["error_after"]
assert len(found["constants"]) == 14 and len(found["samples"]) >= 5
assert all(s["us"] > 0 and s["predicted_us"] > 0 for s in found["samples"])
assert {s["hosts"] for s in found["samples"]} == {1, 2}
END
ok "measuring"

# Whoever waits at a terminal sees how far it is, and a file has nothing of that.
grep -q "phase 1 of" "$tmp/err" && fail "progress, though nobody looks"
# shellcheck disable=SC2086 # words
expect 0 python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))' "$TUTTI" $short
says out 'phase 1 of 3, 1 ranks over shm: all_reduce of 8 bytes'
says out 'phase 3 of 3, 2 ranks over tcp: scatter of 8 bytes'
ok "progress"

# Where the data lies is measured, too: what peers map, of every collective that has it.
expect 0 env TUTTI_DEBUG=INFO "$TUTTI" tune -n 2 -e 256K --busy -o "$tmp/elsewhere"
for coll in all_reduce all_gather reduce_scatter broadcast reduce all_to_all gather scatter; do
	says err " $coll up to 262144 bytes of mapped memory: memory \(TUTTI_ALGO\)"
done
# How ordinary memory is reached is kept, where the first communicator of a phase could measure it, and
# not measured again. A busy machine may let none of them, though their children could.
if ! grep -q '^reach ' "$tmp/elsewhere"; then
	says err 'may not copy|how fast that is could not be measured'
else
	[ "$(grep -c '^reach ' "$tmp/elsewhere")" = 5 ] || fail "not 5 lines of reach"
	# shellcheck disable=SC2086 # words
	expect 0 env TUTTI_DEBUG=INFO TUTTI_TUNE_FILE="$tmp/elsewhere" $long all_reduce
	says err 'a call of the kernel takes [0-9]+ ns, as measured by .tutti tune.$'
fi
ok "memory"

# mine WORDS...: what is kept has this line in place of those that begin alike.
mine()
{
	grep -v "^$1 $2" "$kept" >"$tmp/mine"
	echo "$*" >>"$tmp/mine"
	cp "$tmp/mine" "$kept"
}
mine choose all_reduce 64 ring ranks 2
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_DEBUG=INFO $perf -n 2
says out '"algorithm":"ring"'
says err "what was measured on this machine: tune file $kept"
says err 'all_reduce up to 64 bytes: ring \(tune file\)'
# shellcheck disable=SC2086 # words
expect 0 $perf -n 2 --threads
says out '"algorithm":"ring"'
# shellcheck disable=SC2086 # words
expect 0 $perf -n 3
says out '"algorithm":"exchange"'
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_TUNE_FILE=none $perf -n 2
says out '"algorithm":"exchange"'
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_TUNE_FILE="$tmp/tune0" TUTTI_DEBUG=INFO $perf -n 2
says out '"algorithm":"ring"'
grep -q 'what was measured' "$tmp/err" && fail "TUTTI_TUNE_FILE does not come first"
expect 1 "$TUTTI" run -n 2 sh -c "[ \$TUTTI_RANK = 0 ] || export TUTTI_TUNE_FILE=$tmp/tune0; exec $perf"
says err 'TUTTI_TUNE_FILE of rank 1 is not that of rank 0'
ok "what is kept is used, after TUTTI_TUNE_FILE"

# The tables of this machine go by it, too, those of others do not.
table='tune --table --collective all_reduce --json --host --ranks 2'
# A message costs nothing there, whatever was measured: the latency is that of the call alone.
for other in line_us slot_us yield_us wake_us; do
	mine constant $other 0
done
mine constant call_us 4321
# shellcheck disable=SC2086 # words
expect 0 "$TUTTI" $table
says out '"bytes":8,.*"latency_us":4321,'
# shellcheck disable=SC2086 # words
expect 0 "$TUTTI" $table --xml "$ndv5"
grep -q '"latency_us":4321,' "$tmp/out" && fail "another machine by what was measured here"
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_TUNE_FILE="$kept" "$TUTTI" $table --xml "$ndv5"
says out '"bytes":8,.*"latency_us":4321,'
mine choose all_reduce 64 ring ranks 2
ok "tables of this machine, and of others"

# One rank has it, the other has not: no mistake, and nobody goes by it.
expect 0 "$TUTTI" run -n 2 sh -c \
	"[ \$TUTTI_RANK = 0 ] || export XDG_CACHE_HOME=/nowhere; exec $perf"
says out '"algorithm":"exchange"'
says err 'WARN .*rank 1 does not have what `tutti tune` measured at rank 0, .*: copy one file to all hosts'
expect 0 env TUTTI_DEBUG=INFO "$TUTTI" run -n 2 sh -c \
	"[ \$TUTTI_RANK = 1 ] || export XDG_CACHE_HOME=/nowhere; exec $perf"
says out '"algorithm":"exchange"'
says err 'rank 1 does not have what `tutti tune` measured at rank 0'
ok "all ranks, or none"

# Of another machine, of another version, no tune file.
cp "$kept" "$tmp/good"
for line in 'version 0.0.1' 'machine of somebody else'; do
	sed "s/^${line%% *} .*/$line/" "$tmp/good" >"$kept"
	# shellcheck disable=SC2086 # words
	expect 0 env TUTTI_DEBUG=INFO $perf -n 2
	says out '"algorithm":"exchange"'
	says err "is ignored: its ${line%% *} is \"${line#* }\", not \""
done
echo nonsense >"$kept"
# shellcheck disable=SC2086 # words
expect 0 $perf -n 2
says out '"algorithm":"exchange"'
says err 'is ignored: delete it, or run `tutti tune`'
rm -r "$XDG_CACHE_HOME"
ok "what is not of this machine is ignored, and that is said"

# Whether times hold is not for a busy machine to say; that they are compared is.
status=0
timeout $limit "$TUTTI" tune --check -n 2 -e 8 >"$tmp/out" 2>"$tmp/err" || status=$?
[ $status -le 1 ] || fail "exit code $status of --check"
says out '^of [1-9][0-9]* comparisons [0-9]+ do not hold by more than noise$'
lines err 0
limit=60
ok "tune --check"

bad '--table and --file exclude each other: give one' tune --table --file
bad '--nranks and --table exclude' tune --table -n 2
bad '--out and --check exclude' tune --check -o "$tmp/x"
bad '--busy and --check exclude' tune --check --busy
bad '--nodes needs --table or --file' tune --nodes 2
bad "'1'" tune -n 1
bad "there is no collective 'allreduce'; is all_reduce meant" tune --table --collective allreduce
bad 'send_recv has no algorithms' tune --table --collective send_recv
bad "'0'" tune --table --nodes 0
bad "'many'" tune --table --ranks many
bad 'nowhere' tune --table --xml /nowhere.xml
bad 'tune file /nowhere' tune --file --tune /nowhere
echo 'constant speed 3' >"$tmp/tune"
bad 'tune:1: there is no constant "speed"' tune --table --tune "$tmp/tune"
bad 'nowhere' tune --table --plan /nowhere.json
bad 'takes no argument' tune --table more

# Who decided stands behind what it decided.
expect 0 env TUTTI_ALGO="all_reduce@64K-:ring" "$TUTTI" tune --table --nodes 2 --ranks 2 --host \
	--xml "$ndv5" --collective all_reduce
says out '^ +256 KiB .* ring, TUTTI_ALGO$'
says out '^ +8 B .* [a-z_]+, predicted$'
expect 0 env TUTTI_ALGO="all_reduce@64K-:ring" "$TUTTI" tune --table --nodes 2 --ranks 2 --host \
	--xml "$ndv5" --collective all_reduce --json
says out '"bytes":32768,"algorithm":"[a-z_]+",.*"by":"predicted"'
says out '"bytes":262144,"algorithm":"ring",.*"by":"TUTTI_ALGO"'
"$TUTTI" show all_reduce --algorithm ring -n 4 | sed '1s/ring/mine/' >"$tmp/mine"
expect 0 env TUTTI_ALGO_FILE="$tmp/mine" "$TUTTI" tune --table --nodes 2 --ranks 2 --host \
	--xml "$ndv5" --collective all_reduce
says out '^ +8 B .* mine, TUTTI_ALGO_FILE$'
expect 0 "$TUTTI" tune --table --nodes 1 --ranks 2 --host --collective all_reduce
says out '^ +8 B .* exchange, measured$'
expect 2 env TUTTI_ALGO="rign" "$TUTTI" tune --table --host --xml "$ndv5"
says err 'no collective has one algorithm "rign"'
# A program of the user's own that works where the data lies is taken where buffers are mapped.
"$TUTTI" show all_reduce --algorithm memory -n 2 | sed '1s/memory/mine/' >"$tmp/mine"
# shellcheck disable=SC2086 # words
expect 0 env TUTTI_DEBUG=INFO TUTTI_ALGO_FILE="$tmp/mine" $long all_reduce --buffers registered
says err 'all_reduce up to 524288 bytes: direct \(measured\)'
says err 'all_reduce up to 524288 bytes of mapped memory: mine \(TUTTI_ALGO_FILE\)'
ok "who decided"
