#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tutti run on several hosts, through a remote shell.
set -eu
cd "$(dirname "$0")"
. ../net/common
. ./common

launch_begin 3
run()
{
	timeout 100 ip netns exec "$net-0" "$TUTTI" run --rsh "$net_dir/rsh -o BatchMode=yes" "$@" \
		>"$net_dir/out" 2>"$net_dir/err"
}
code_of() { code=0; "$@" || code=$?; }

# gone NAME: no process has it among its words any more. A host that is held up for more than five seconds is
# not waited for: its ranks end by themselves.
gone() { ! pgrep -f "$1" >/dev/null; }

right "tutti run --hosts" 4 "$TUTTI" run --rsh "$net_dir/rsh" --hosts 10.77.0.1,10.77.0.2 -n 4 --
right "--hosts with user and ranks" 5 "$TUTTI" run --rsh "$net_dir/rsh" \
	--hosts me@10.77.0.1:2,10.77.0.2:3 --
printf '# hosts\n10.77.0.2 slots=2 # two\n\n10.77.0.3:1\n10.77.0.1\n' >"$net_dir/hosts"
code_of run --hostfile "$net_dir/hosts" true
[ "$code" = 2 ] && grep -q "but not for 10.77.0.1" "$net_dir/err" || die "some hosts without ranks"
sed -i '$d' "$net_dir/hosts"
right --hostfile 3 "$TUTTI" run --rsh "$net_dir/rsh" --hostfile "$net_dir/hosts" --

survives "tutti run --keep-going" 3 "$TUTTI" run --rsh "$net_dir/rsh" --keep-going --hostfile "$net_dir/hosts" --

# What the ranks get, and what nobody else sees.
run --hosts 10.77.0.1:2,10.77.0.2:1 --tag sh -c '
	echo "$TUTTI_RANK/$TUTTI_NRANKS at $TUTTI_COMM_ID in $PWD, $(wc -c) bytes"
	[ "${#TUTTI_COMM_SECRET}" = 64 ] && echo secret
	tr "\0" " " </proc/*/cmdline 2>/dev/null | grep -q "$TUTTI_COMM_SECRET" && echo seen
	echo "it'"'"'s $TUTTI_DEBUG" >&2' || die "three ranks"
for rank in 0 1 2; do
	grep -q "^\[$rank\] $rank/3 at 10.77.0.1:[0-9]* in $PWD, 0 bytes$" "$net_dir/out" || die "rank $rank"
	grep -q "^\[$rank\] secret$" "$net_dir/out" || die "the secret of rank $rank"
	grep -q "^\[$rank\] it's $" "$net_dir/err" || die "errors of rank $rank"
done
! grep -q seen "$net_dir/out" || die "the secret is on a command line"
[ "$(wc -l <"$net_dir/out")" = 6 ] || die "other output"
ok "variables, folder, input and output of the ranks"

TUTTI_DEBUG=INFO run --port 4777 --hosts 10.77.0.1,10.77.0.2 sh -c 'echo "$TUTTI_DEBUG $TUTTI_COMM_ID"'
[ "$(sort -u "$net_dir/out")" = "INFO 10.77.0.1:4777" ] || die "--port"
ok "--port, and variables of ours"

nap=987.$$
code_of run --hosts 10.77.0.1,10.77.0.2,10.77.0.3 sh -c '[ $TUTTI_RANK = 1 ] && exit 7; exec sleep '$nap
[ "$code" = 7 ] || die "exit code $code, not 7"
grep -q "rank 1 (process [0-9]*) ended with exit code 7" "$net_dir/err" || die "rank 1 is not named"
grep -q "the remote shell to 10.77.0.2 ended with exit code 7; ending" "$net_dir/err" || die "its host"
await "ranks end" gone "$nap"
ok "an exit code ends the job and is handed on"

code_of run --hosts 10.77.0.1,10.77.0.2 sh -c '[ $TUTTI_RANK = 1 ] && kill -SEGV $$; exec sleep '$nap
[ "$code" = 139 ] || die "exit code $code, not 139"
await "ranks end" gone "$nap"
ok "a signal is 128 and its number"

code_of run --keep-going --hosts 10.77.0.1,10.77.0.2 sh -c '[ $TUTTI_RANK = 1 ] && kill -9 $$; sleep 0.3; echo on'
[ "$code" = 0 ] && grep -q '^on$' "$net_dir/out" || die "--keep-going: exit code $code"
ok --keep-going

# begin COMMAND...: in the background, until both ranks have begun.
begin()
{
	rm -f "$net_dir"/begun.*
	run "$@" sh -c 'echo "$TUTTI_COMM_SECRET" >"$0/begun.$TUTTI_RANK"; exec sleep '$nap "$net_dir" &
	runner=$!
	net_pids="$net_pids $runner"
	await "both ranks begin" have_begun
}
have_begun() { [ -s "$net_dir/begun.0" ] && [ -s "$net_dir/begun.1" ]; }

# holds PID FILE: whether the line in the file is anywhere in what the process may write to.
holds()
{
	/usr/bin/python3 - "$1" "$2" <<-'END'
		import sys

		pid, file = sys.argv[1:]
		line = open(file, "rb").read().strip()
		assert len(line) == 64
		with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
		    for words in map(str.split, maps):
		        start, end = (int(word, 16) for word in words[0].split("-"))
		        if words[1].startswith("rw"):
		            memory.seek(start)
		            if line in memory.read(end - start):
		                sys.exit(0)
		sys.exit(1)
	END
}
not() { ! "$@"; }
begin --hosts 10.77.0.1,10.77.0.2
launcher=$(pgrep -f "^$TUTTI run --rsh $net_dir/rsh")
holds "$(pgrep -f "^sleep $nap" | head -n 1)" "$net_dir/begun.0" || die "the secret of a rank is not found"
# The ranks may run before the launcher is past telling them.
await "the secret is not kept" not holds "$launcher" "$net_dir/begun.0"
ok "the secret is not kept once all hosts have it"
kill -INT "$launcher"
code_of wait "$runner"
[ "$code" = 130 ] || die "SIGINT: exit code $code"
await "SIGINT: ranks end" gone "$nap"
ok "a signal to us ends the job"

begin --hosts 10.77.0.1,10.77.0.2
kill -KILL "$(pgrep -f "^$TUTTI run --rsh $net_dir/rsh")"
code_of wait "$runner"
await "SIGKILL: ranks end" gone "$nap"
ok "ranks end when we are killed"

cat >"$net_dir/rsh-mortal" <<-END
	#!/bin/sh
	[ "\$1" = 10.77.0.1 ] || echo \$\$ >"$net_dir/shell"
	"$net_dir/rsh" "\$@"
END
chmod +x "$net_dir/rsh-mortal"
begin --rsh "$net_dir/rsh-mortal" --hosts 10.77.0.1,10.77.0.2
kill -KILL "$(cat "$net_dir/shell")"
code_of wait "$runner"
[ "$code" = 137 ] || die "a dead remote shell: exit code $code"
grep -q "the remote shell to 10.77.0.2 was killed by signal 9" "$net_dir/err" || die "which shell"
ok "a remote shell that dies ends the job"

code_of run --hosts 10.77.0.1,10.99.0.9 sleep $nap
[ "$code" = 255 ] && grep -q 'no host 10.99.0.9' "$net_dir/err" || die "no such host: $code"
await "no such host: ranks end" gone "$nap"
code_of run --hosts 10.77.0.1,10.77.0.2 ./no-such-program
[ "$code" = 127 ] || die "no such program: $code"
code_of run --hosts localhost,10.77.0.2 true
[ "$code" = 2 ] || die "localhost: $code"
code_of run --hosts 10.77.0.1:x true
[ "$code" = 2 ] || die "10.77.0.1:x: $code"
ok "mistakes"
echo "$passed passed, 0 failed"
