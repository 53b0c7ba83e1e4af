#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Bad usage exits with 2, names the value and says what would be right.
. "$(dirname "$0")/common"
unset TUTTI_RANK TUTTI_NRANKS TUTTI_COMM_ID TUTTI_COMM_FILE

# bad PATTERN ARGUMENTS...
bad()
{
	pattern=$1
	shift
	expect 2 "$TUTTI" "$@"
	says err "$pattern"
	says err "'tutti $1 --help'"
	lines out 0
	ok "$*"
}

bad 'say which collective' perf
bad "no collective 'all_redcue'; is all_reduce meant\?" perf all_redcue -n 2
bad "no argument behind 'all_reduce', it was given 'broadcast'" perf all_reduce broadcast -n 2
bad "no option --rank" perf all_reduce --rank 3
bad "-o is for what reduces, not for broadcast" perf broadcast -o max -n 2
bad "-r is for what has a root, not for all_reduce" perf all_reduce -r 0 -n 2
bad "no option -x" perf all_reduce -x
bad "option -n needs a value: RANKS" perf all_reduce -n
bad "option --json takes no value, it was given '1'" perf all_reduce --json=1
for word in allreduce AllReduce all-reduce; do
	bad "no collective '$word'; is all_reduce meant\?" perf $word -n 2
done
bad "no collective 'all': choose one of" perf all -n 2
bad "-n 'p' is no number from 1 to [0-9]+ .-np of mpirun is -n here." run -np 2 true
bad "-n 'two' is no number" perf all_reduce -n two
bad "-n '0' is no number from 1 to" perf all_reduce -n 0
bad "-n '2x' is no number" perf all_reduce -n 2x
bad "-n '99999999999' is no number" perf all_reduce -n 99999999999
bad "-b '-8' is no size" perf all_reduce -n 2 -b -8
bad "-b '8X' is no size" perf all_reduce -n 2 -b 8X
bad "-b '8KK' is no size" perf all_reduce -n 2 -b 8KK
bad "-e '99999999999999G' is no size" perf all_reduce -n 2 -e 99999999999999G
bad "-f '1' is no size of at least 2" perf all_reduce -n 2 -f 1
bad "takes no argument, it was given 'all'" ping all
bad "-n '1' is no number from 2 to" ping -n 1
bad "--ranks 'some': choose hosts or all" ping -n 2 --ranks some
bad "--peer '1' is no pair of ranks" ping -n 2 --peer 1
bad "--peer '1x' is no number" ping -n 2 --peer 0,1x
bad "--peer 1,1: nothing lies between" ping -n 2 --peer 1,1
bad "--peer 0,2: there are ranks 0 to 1" ping -n 2 --peer 0,2
bad "--seconds '0' is no time" ping -n 2 --seconds 0
bad "--seconds 'nan' is no time" ping -n 2 --seconds nan
bad "--bytes '0' is no size" ping -n 2 --bytes 0
bad "or give -n RANKS" ping
bad "-c '2': choose 0 or 1" perf all_reduce -n 2 -c 2
bad '-b 1024 is more than -e 8' perf all_reduce -n 2 -b 1K -e 8
bad '-r 2 is no rank of 2: they are 0 to 1' perf broadcast -n 2 -r 2
bad "no type 'float128': choose one of int8, .*, all, " perf all_reduce -n 2 -d float128
bad "no operation 'xor': choose one of sum, .* or all" perf all_reduce -n 2 -o xor
bad '-o band: float32 has no such operation: choose one of sum, .*, avg, or all' perf all_reduce -n 2 -o band
bad '-o max: complex64 has no such operation: choose one of sum, prod, avg, or all' \
	perf all_reduce -n 2 -d complex64 -o max
bad "all_reduce has no algorithm 'bogus': choose one of " perf all_reduce -n 2 --algorithm bogus
bad "'pinned': choose plain or registered" perf all_reduce -n 2 --buffers pinned
bad '--threads needs --nranks' perf all_reduce --threads
bad 'choose a smaller -e or -n' perf all_reduce -n 64 -e 1T
bad 'give -n RANKS to start ranks on this machine' perf all_reduce
bad '--from, --to and --sharded are for handoff, not for all_reduce' perf all_reduce -n 2 --from 0
bad '--from, --to and --sharded are for handoff' perf reduce -n 2 --sharded both
bad '--transport: its value is empty' perf all_reduce -n 2 --transport ''
most=$(($(getconf _NPROCESSORS_ONLN) * 256))
if [ $most -lt 65536 ]; then
	bad "-n $((most + 1)): [0-9]+ cores here run at most $most ranks" \
		perf all_reduce -n $((most + 1)) -e 8
	bad "run at most $most ranks" ping -n $((most + 1))
	bad "run at most $most ranks" tune -n $((most + 1))
fi

bad 'how many ranks to start: -n RANKS' run true
bad 'which program to run' run -n 2
bad "-n '-1' is no number" run -n -1 true
bad 'no option --bogus' run --bogus -n 2 true
bad '--rsh needs --hosts or --hostfile' run --rsh ssh -n 2 true
bad '--port needs --hosts or --hostfile' run --port 4000 -n 2 true
bad '--hosts: its value is empty' run --hosts '' true
expect 2 "$TUTTI" run --hostfile / true
says err 'cannot read /: Is a directory'
for host in -oX '[-oX]' '[-oX]:2' :4 '[]' '[]:4'; do
	bad 'is no name of a host' run --hosts "$host" true
done
bad "'' is no name of a host" run --hosts a,,b true
bad "'b*...' is no name of a host" run --hosts "$(printf '%300s' | tr ' ' b)" true
bytes=$(printf 'caf\351')
expect 1 "$TUTTI" run --rsh false --hosts a,b true "$bytes"
says err 'must be UTF-8'
TUTTI_TOPO_ROOT=/$bytes expect 1 "$TUTTI" run --rsh false --hosts a,b true
says err 'must be UTF-8'
ok 'words and variables for other hosts that JSON cannot carry'

bad 'say which collective, or --check FILE' show
bad "no collective 'bogus'" show bogus
bad "has no algorithm 'bogus': choose one of ring|has no algorithm 'bogus': choose one of" \
	show all_reduce --algorithm bogus -n 4
bad 'for how many ranks: -n RANKS' show all_reduce --algorithm ring
bad '--root 4 is no rank of 4' show broadcast --algorithm chain -n 4 --root 4
bad '--rank 9 is no rank of 4' show all_reduce --algorithm ring -n 4 --rank 9
bad "cannot read '/nonexistent'" show --check /nonexistent
bad '--check and COLLECTIVE exclude each other' show all_reduce --check /nonexistent
bad '--bytes needs --check' show all_reduce -n 2 --bytes 8
bad '--rank needs --algorithm' show all_reduce -n 2 --rank 0
bad '--root needs --algorithm' show broadcast -n 2 --root 0

bad '--xml: its value is empty' topo --xml ''
bad '--measure looks at a machine, and --xml /dev/null is a file: give --detect' \
	topo --xml /dev/null --measure
bad '--format and --json exclude each other' topo --json --format xml
bad '--output: its value is empty|-o: its value is empty' topo -o ''
bad '--format and --json exclude each other' plan --json --format nccl
bad '--explain is for the table and --json' plan --explain --format dot
bad '--bytes needs --handoff' plan --bytes 1M
bad '--markdown and --json exclude each other' env --markdown --json

bad "takes no argument, it was given 'TUTTI_DEBUG'" env TUTTI_DEBUG
bad "takes no argument, it was given '3'" version 3
