#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# run: what the ranks get, how one's end ends all, and that nothing is left.
. "$(dirname "$0")/common"

lines_are() { [ "$(wc -l <"$tmp/out")" -eq "$1" ]; }

expect 0 "$TUTTI" run -n 3 sh -c 'echo "$TUTTI_RANK/$TUTTI_NRANKS $TUTTI_COMM_FILE"'
lines out 3
for rank in 0 1 2; do says out "^$rank/3 /.+/id$"; done
dir=$(sed -n 's|^0/3 \(.*\)/id$|\1|p' "$tmp/out")
[ ! -e "$dir" ] || fail "$dir is left"
ok "the environment of the ranks"

TUTTI_COMM_ID=127.0.0.1:5 expect 0 "$TUTTI" run -n 1 sh -c 'test -z "${TUTTI_COMM_ID-}"'
ok "an id that was meant for another job does not reach them"

expect 0 "$TUTTI" run -n 2 -- sh -c 'test "$1" = -n -a "$2" = --json' name -n --json
ok "the program's options are its own"

expect 0 "$TUTTI" run -n 3 --tag sh -c 'echo a; echo b >&2; printf c'
lines out 6
lines err 3
for rank in 0 1 2; do
	says out "^\[$rank\] a$"
	says out "^\[$rank\] c$"
	says err "^\[$rank\] b$"
done
ok "--tag"

expect 0 "$TUTTI" run -n 1 --tag awk 'BEGIN { for (i = 0; i < 20000; i++) printf "x"; print "" }'
[ "$(sed 's/^\[0\] //' "$tmp/out" | tr -d '\n' | wc -c)" -eq 20000 ] || fail "characters are lost"
ok "--tag of a long line loses nothing"

echo question | "$TUTTI" run -n 3 sh -c 'read -r line && echo "$TUTTI_RANK $line"; true' >"$tmp/out"
lines out 1
says out '^0 question$'
ok "standard input is that of rank 0"

expect 7 "$TUTTI" run -n 4 sh -c '[ $TUTTI_RANK = 2 ] && exit 7; exec sleep 30'
says err 'rank 2 .*exit code 7'
lines err 1
ok "an exit code is handed on"

expect 139 "$TUTTI" run -n 3 sh -c '[ $TUTTI_RANK = 1 ] && kill -SEGV $$; exec sleep 30'
says err 'rank 1 .*signal 11 \(Segmentation fault\)'
ok "a signal is 128 and its number"

expect 3 "$TUTTI" run -n 2 sh -c '[ $TUTTI_RANK = 0 ] && sleep 0.3 && exit 3; trap "" TERM; while :; do sleep 1; done'
ok "who does not want to end is ended"

# A rank's own children, which a signal to the rank does not reach. Nobody else sleeps as long.
nap=987.$$
expect 5 "$TUTTI" run -n 2 \
	sh -c '[ $TUTTI_RANK = 0 ] && sleep 0.3 && exit 5; sleep '$nap' & sleep '$nap
for pid in /proc/[0-9]*; do
	! grep -aq "^sleep.$nap" "$pid/cmdline" 2>/dev/null || fail "$pid is left"
done
ok "what ranks started is ended too"

expect 127 "$TUTTI" run -n 2 no-such-program
says err "cannot run 'no-such-program': No such file"
lines err 1
expect 126 "$TUTTI" run -n 2 /etc/passwd
says err "cannot run '/etc/passwd': Permission denied"
ok "a program that cannot be run"

# SIGINT is ignored in what a script starts in the background.
for signal in TERM HUP; do
	# A rank that a busy machine holds up for two seconds then is killed before it says anything.
	for try in 1 2 3 4 5; do
		: >"$tmp/out" # what came before is not what we wait for
		"$TUTTI" run -n 2 sh -c "trap 'echo caught; exit 0' $signal; echo ready
			while :; do sleep 0.1; done" >"$tmp/out" 2>"$tmp/err" &
		run=$!
		eventually lines_are 2
		kill -$signal $run
		status=0
		wait $run || status=$?
		[ $status -gt 128 ] || fail "SIG$signal gave exit code $status"
		! lines_are 4 || break
	done
	lines out 4
done
ok "signals reach the ranks"

# Ranks that are shells with children of their own, of which nobody else has such.
nap=986.$$
leaves='echo "$TUTTI_COMM_FILE"; sleep '$nap' & sleep '$nap' &'
no_naps() { ! grep -aqs "^sleep.$nap" /proc/[0-9]*/cmdline; }
nothing_is_left()
{
	eventually no_naps
	dir=$(dirname "$(head -n 1 "$tmp/out")")
	case $dir in */tutti-run-*) ;; *) fail "the ranks did not say where they meet" ;; esac
	eventually test ! -e "$dir"
}
: >"$tmp/out" # what came before is not what we wait for
"$TUTTI" run -n 2 sh -c "$leaves wait" >"$tmp/out" &
run=$!
eventually lines_are 2
kill -KILL $run
wait $run 2>/dev/null
nothing_is_left
ok "nothing outlives us, if we are killed"

: >"$tmp/out" # what came before is not what we wait for
"$TUTTI" run -n 2 sh -c "$leaves wait" >"$tmp/out" 2>"$tmp/err" &
run=$!
eventually lines_are 2
kill -KILL $(children $run)
status=0
wait $run || status=$?
[ $status = 137 ] || fail "exit code $status"
nothing_is_left
says err 'was killed by signal 9$'
ok "nothing is left if our child is killed, which minds the ranks"

# Nobody reads what they print, with and without tags.
for tag in "" --tag; do
	"$TUTTI" run -n 2 $tag sh -c "$leaves while :; do echo more; sleep 0.1; done" 2>&1 |
		head -n 2 | sed 's/^\[[01]\] //' >"$tmp/out"
	nothing_is_left
done
ok "nothing is left if our output is closed"

# Ranks that go on without the one that died, and how they end.
expect 0 "$TUTTI" run -n 3 --keep-going \
	sh -c '[ $TUTTI_RANK = 1 ] && kill -KILL $$; sleep 0.5; echo "$TUTTI_RANK is done"'
says err 'rank 1 .*was killed by signal 9 .*; the others go on$'
lines err 1
for rank in 0 2; do says out "^$rank is done$"; done
expect 3 "$TUTTI" run -n 3 --keep-going \
	sh -c '[ $TUTTI_RANK = 1 ] && exit 3; sleep 0.5; echo "$TUTTI_RANK is done"'
says err 'rank 1 .*ended with exit code 3; the others go on$'
lines out 2
expect 139 "$TUTTI" run -n 1 --keep-going sh -c 'kill -SEGV $$'
: >"$tmp/out" # what came before is not what we wait for
"$TUTTI" run -n 2 --keep-going sh -c "$leaves wait" >"$tmp/out" &
run=$!
eventually lines_are 2
kill -TERM $run
wait $run 2>/dev/null
nothing_is_left
ok "--keep-going: ranks that fail do not end the others, a signal ends all"

for where in "$tmp" /nonexistent; do
	TMPDIR=$where expect 0 "$TUTTI" run -n 1 sh -c 'echo "$TUTTI_COMM_FILE"'
	says out "^($tmp|/tmp)/tutti-run-[A-Za-z0-9]*/id$"
	[ "$where" != "$tmp" ] || says out "^$tmp/"
done
ok "the ranks meet below TMPDIR, if that can be"
if unshare -m true 2>/dev/null; then
	expect 0 unshare -m sh -c 'mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp || exit 9
		exec "$0" run -n 2 "$0" perf barrier -i 1' "$TUTTI"
	ok "a /tmp that cannot be written to"
fi

# What is set for another job: the tool's own ranks are not of it.
for verb in "perf barrier -i 1" "ping --seconds 0.1"; do
	# shellcheck disable=SC2086
	limit=50 TUTTI_COMM_ID=127.0.0.1:5 TUTTI_COMM_SECRET=short expect 0 "$TUTTI" $verb -n 2
done
ok "the address of another job does not reach ranks that the tool starts"

# On two hosts channels are planned, by a library that may not be there.
mkdir "$tmp/no-solver"
: >"$tmp/no-solver/libClp.so.1"
LD_LIBRARY_PATH="$tmp/no-solver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" expect 0 "$TUTTI" run -n 4 sh -c \
	'TUTTI_HOST_ID=$((TUTTI_RANK / 2)) exec "$0" perf all_reduce -b 8 -e 1M -f 64 -i 2' "$TUTTI"
says err 'go by the numbers of the ranks: the solver Clp .package coinor-libclp1. is missing on rank 0'
lines err 1
says out 'Out of bounds values : 0 OK'
ok "two hosts without the library that plans"

# Remote shells that are not as they should be. The words of the job are more than a socket takes.
long=$(head -c 100000 /dev/zero | tr '\0' x)
cat >"$tmp/deaf" <<-END
	#!/bin/sh
	[ "\$1" = deaf ] || exit 7
	while [ ! -e "$tmp/enough" ]; do sleep 0.1; done
END
chmod +x "$tmp/deaf"
"$TUTTI" run --rsh "$tmp/deaf" --hosts deaf,other true "$long" "$long" "$long" "$long" 2>"$tmp/err" &
run=$!
eventually grep -q 'the remote shell to other ended with exit code 7; ending the others$' "$tmp/err"
: >"$tmp/enough"
status=0
wait $run || status=$?
[ $status = 7 ] || fail "exit code $status, not 7"
ok "a remote shell that reads nothing does not hold us up"

# Rank 0 listens where a firewall lets the others through.
cat >"$tmp/here" <<-END
	#!/bin/sh
	shift
	exec sh -c "\$*"
END
chmod +x "$tmp/here"
first=$((20000 + $$ % 10000))
TUTTI_PORT_RANGE=$first-$((first + 19)) expect 0 "$TUTTI" run --rsh "$tmp/here" --hosts localhost -n 1 \
	sh -c 'echo "${TUTTI_COMM_ID##*:}"'
port=$(cat "$tmp/out")
[ "$port" -ge "$first" ] && [ "$port" -le $((first + 19)) ] || fail "port $port is not of $first to $((first + 19))"
TUTTI_PORT_RANGE=5-4 expect 1 "$TUTTI" run --rsh "$tmp/here" --hosts localhost -n 1 true
says err 'TUTTI_PORT_RANGE=5-4 is no range of ports'
ok "the port of rank 0 is one of TUTTI_PORT_RANGE"

for port in 70000 0 12x 99999999 ''; do
	printf '#!/bin/sh\necho "tutti-run-port %s"\nexec cat\n' "$port" >"$tmp/liar"
	chmod +x "$tmp/liar"
	expect 1 "$TUTTI" run --rsh "$tmp/liar" --hosts a,b true
	says err "a says that rank 0 has the port \"$port\", and a port is 1 to 65535"
done
ok "a port that is none ends the job"

expect 0 "$TUTTI" run -n 2 --json true
says out '^\{"nranks":2,"exit_code":0\}$'
expect 3 "$TUTTI" run -n 2 --json sh -c 'test "$TUTTI_RANK" = 0 || exit 3; sleep 100'
says out '^\{"nranks":2,"exit_code":3,"failed_rank":1\}$'
expect 137 "$TUTTI" run -n 2 --json sh -c 'test "$TUTTI_RANK" = 0 || kill -9 $$; sleep 100'
says out '^\{"nranks":2,"exit_code":137,"failed_rank":1,"signal":9\}$'
expect 1 "$TUTTI" run --rsh false --hosts a,b --json true
says out '"failed_host":"[ab]"'
ok "--json"

expect 0 "$TUTTI" run -n 64 true
ok "64 ranks"

cores=$(nproc)
if [ "$cores" -ge 2 ]; then
	expect 0 "$TUTTI" run -n 2 nproc
	says out "^$((cores / 2))$"
	[ "$(awk '{ n += $1 } END { print n }' "$tmp/out")" -eq "$cores" ] ||
		fail "2 ranks do not share $cores cores"
	expect 0 "$TUTTI" run -n 2 --no-bind nproc
	says out "^$cores$"
	ok "cores are shared out, or not"
	# A rank that may use one core only is not therefore one of a crowd.
	TUTTI_DEBUG=INFO expect 0 "$TUTTI" run -n 2 "$TUTTI" perf barrier -i 1
	! grep -q "more ranks than cores" "$tmp/err" || fail "2 ranks on 2 cores are a crowd"
	TUTTI_DEBUG=INFO expect 0 "$TUTTI" run -n $((cores + 1)) "$TUTTI" perf barrier -i 1
	says err "more ranks than cores"
	ok "a crowd is more ranks than cores"
fi
# Where the numbers of the CPUs do not follow the sockets.
for cpu in 0 1; do
	mkdir "$tmp/topology$cpu"
	echo $((1 - cpu)) >"$tmp/topology$cpu/physical_package_id"
	echo $cpu >"$tmp/topology$cpu/thread_siblings_list"
done
if taskset -c 0,1 unshare -m mount --bind "$tmp/topology1" /sys/devices/system/cpu/cpu1/topology 2>/dev/null; then
	expect 0 taskset -c 0,1 unshare -m sh -c 'for cpu in 0 1; do
			mount --bind "$1/topology$cpu" "/sys/devices/system/cpu/cpu$cpu/topology" || exit 9
		done
		exec "$0" run -n 2 --tag grep Cpus_allowed_list: /proc/self/status' "$TUTTI" "$tmp"
	says out '^\[0\] *Cpus_allowed_list:[[:space:]]*1$'
	says out '^\[1\] *Cpus_allowed_list:[[:space:]]*0$'
	ok "cores are shared out socket by socket"
fi
if [ "$cores" -le 64 ]; then
	expect 0 "$TUTTI" run -n $((cores * 3)) --tag grep Cpus_allowed_list: /proc/self/status
	sed 's/^\[\([0-9]*\)\] */\1 /' "$tmp/out" | sort -n | awk '
		NF != 3 || $3 !~ /^[0-9]+$/ || (NR % 3 != 1 && $3 != last) ||
			(NR % 3 == 1 && $3 in seen) { bad = 1 }
		{ last = $3; seen[$3] }
		END { exit bad || NR == 0 }' || fail "3 ranks of a core: $(cat "$tmp/out")"
	ok "three times as many ranks: three that follow each other share a core"
fi
if [ "$cores" -ge 2 ]; then
	expect 0 "$TUTTI" run -n $((cores + 1)) nproc
	says out "^$cores$"
	ok "where some would have more ranks than others, the system spreads them"
fi

# What is faster is the machine's affair; that every rank of a host is named, and why, is not.
barrier="$TUTTI perf barrier -i 1"
TUTTI_DEBUG=INFO expect 0 "$TUTTI" run -n 3 $barrier
says err 'ranks 0-2: .*ordinary memory (is copied by the kernel: of 512 KiB|goes through slots: ).+'
TUTTI_REACH=slots TUTTI_DEBUG=INFO expect 0 "$TUTTI" run -n 3 $barrier
says err 'ranks 0-2: .*ordinary memory goes through slots: TUTTI_REACH asks for it'
TUTTI_REACH=slots TUTTI_DEBUG=INFO expect 0 "$TUTTI" run -n 4 \
	sh -c 'TUTTI_HOST_ID=$((TUTTI_RANK / 2)) exec "$0" perf barrier -i 1' "$TUTTI"
says err 'ranks 0-1: .*ordinary memory goes through slots'
says err 'ranks 2-3: .*ordinary memory goes through slots'
says err 'ranks of different hosts share no memory: all data between them goes by messages'
ok "a job says how ordinary memory is reached"

# The id, through which any process of this user could join, is there only until all have come.
expect 0 "$TUTTI" run -n 2 sh -c '"$0" perf barrier -i 1 && ls "${TUTTI_COMM_FILE%/*}"' "$TUTTI"
! grep -q '^id' "$tmp/out" || fail "the id stays while the job runs"
ok "the id is removed when all have read it"

# refuses RANK PATTERN: a rank started by hand does not take $tmp/meet, and says why at once.
refuses()
{
	limit=100 TUTTI_RANK=$1 TUTTI_NRANKS=2 TUTTI_COMM_FILE="$tmp/meet" expect 2 "$TUTTI" perf barrier -i 1
	says err "$2"
}
head -c 256 /dev/zero >"$tmp/other"
chmod 600 "$tmp/other"
ln -s "$tmp/other" "$tmp/meet"
for rank in 0 1; do
	refuses $rank 'TUTTI_COMM_FILE=.*/meet is a symbolic link'
done
rm "$tmp/meet"
cp "$tmp/other" "$tmp/meet"
refuses 0 'TUTTI_COMM_FILE=.*/meet exists already and is not what rank 0 makes'
for mode in 640 602; do
	chmod $mode "$tmp/meet"
	for rank in 0 1; do
		refuses $rank "is not what rank 0 makes: it has mode $mode and"
	done
done
chmod 600 "$tmp/meet"
if [ "$(id -u)" = 0 ]; then
	chown 65534 "$tmp/meet"
	refuses 1 'belongs to user 65534, and must be a file of mode 600 of user 0'
fi
rm "$tmp/meet"
mkfifo -m 600 "$tmp/meet"
refuses 1 'is not what rank 0 makes'
ok "an id that somebody else may have put there is refused"
