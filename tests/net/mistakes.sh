#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Mistakes and faults that take a network, as every rank of a job sees them: its status, what the text
# says, and that nobody waits for a time limit where it can be known before. Those of one host are in
# tests/mp/test_mistakes.c.
set -eu
cd "$(dirname "$0")"
. ./common
: "${BUILD:?where tests were built}"
stream=$BUILD/tests/net_stream
# What is known within a second or two, on a machine that is ten times slower.
soon=20000

# As a command before a rank's: how long it took. It begins once somebody listens where the ranks meet
# (TEST_AFTER=listen), or another rank has ended (its number).
make_timed()
{
	cat >"$net_dir/timed" <<-'END'
		#!/bin/sh
		dir=${0%/*}
		case ${TEST_AFTER:-} in
		listen) until ss -Hltn sport = :7711 | grep -q .; do sleep 0.02; done ;;
		?*) until [ -e "$dir/ms.$TEST_AFTER" ]; do sleep 0.02; done ;;
		esac
		begin=$(date +%s%N) code=0
		"$@" || code=$?
		echo $((($(date +%s%N) - begin) / 1000000)) >"$dir/ms.${TEST_AS:-$TUTTI_RANK}"
		exit "$code"
	END
	chmod +x "$net_dir/timed"
}

# all_fail HOSTS LIMIT_MS: a job whose ranks all fail.
all_fail()
{
	rm -f "$net_dir"/ms.*
	export TUTTI_BOOT_TIMEOUT_MS="$2"
	job "$1" "$net_dir/timed" "$stream" all_reduce 65536 0.2 || true
	unset TUTTI_BOOT_TIMEOUT_MS
}

# sees NAME RANK STATUS PATTERN: what a rank of it saw, soon.
sees()
{
	[ "$(cat "$net_dir/code.$2")" = 1 ] || die "$1: rank $2 does not fail"
	grep -q "^rank .*, $3: .*$4" "$net_dir/err.$2" || die "$1: rank $2 does not say '$3: $4'"
	[ "$(cat "$net_dir/ms.$2")" -le "$soon" ] || die "$1: rank $2 takes $(cat "$net_dir/ms.$2") ms"
}

# keep_out HOST PORTS: what comes from other hosts to these ports of TCP is dropped. let_in HOST ends it.
keep_out()
{
	ip -n "$net-$1" rule add pref 2 lookup local
	ip -n "$net-$1" rule del pref 0
	ip -n "$net-$1" rule add pref 1 iif eth0 ipproto tcp dport "$2" blackhole
}

let_in()
{
	ip -n "$net-$1" rule add pref 0 lookup local
	ip -n "$net-$1" rule del pref 2
	ip -n "$net-$1" rule del pref 1
}

names_that_do_not_resolve()
{
	export TUTTI_COMM_ID=node17.invalid:7711
	all_fail "0 1 1" 2000
	for rank in 0 1 2; do
		sees "a name that does not resolve" $rank TUTTI_ETIMEOUT \
			'no address of the host in "node17.invalid:7711"'
	done
	ok "a name that does not resolve"
}

# Nobody knows before the time is over whether somebody is about to open it.
port_to_meet_is_closed()
{
	export TUTTI_COMM_ID=10.77.0.1:7711
	keep_out 0 7711
	all_fail "0 1" 3000
	let_in 0
	sees "a port to meet at that is closed" 0 TUTTI_ETIMEOUT \
		"rank 1 of 2 did not come within [0-9.]* s: .*firewall"
	sees "a port to meet at that is closed" 1 TUTTI_ETIMEOUT \
		"rank 0 of 2, .*, did not answer within 3000 ms: 10.77.0.1:7711: no answer"
	ok "a firewall before the port to meet at"
}

# The ranks meet at their root, but do not reach each other.
other_ports_are_closed()
{
	export TUTTI_COMM_ID=10.77.0.1:7711 TUTTI_PORT_RANGE=41000-41099
	keep_out 0 41000-41099
	keep_out 1 41000-41099
	all_fail "0 0 1 1" 60000
	let_in 0
	let_in 1
	for rank in 0 1 2 3; do
		sees "closed ports of ranks" $rank TUTTI_EPEER \
			"rank [02] (.*) came, but cannot be reached: 10.77.0.[12]:410"
	done
	unset TUTTI_PORT_RANGE
	ok "a firewall before all other ports"
}

# The second job finds the address taken, and its rank 1 is taken for one of the first.
two_jobs_at_one_address()
{
	export TUTTI_COMM_ID=10.77.0.1:7711
	set_0="TUTTI_NRANKS=3" set_1="TUTTI_NRANKS=3"
	set_2="TUTTI_NRANKS=3 TUTTI_RANK=0 TEST_AS=2 TEST_AFTER=listen"
	set_3="TUTTI_NRANKS=3 TUTTI_RANK=1 TEST_AS=3 TEST_AFTER=2"
	all_fail "0 1 0 1" 60000
	set_0='' set_1='' set_2='' set_3=''
	sees "two jobs at one address" 2 TUTTI_ESYS "port 7711: Address already in use"
	for rank in 0 1 3; do
		sees "two jobs at one address" $rank TUTTI_EMISMATCH "rank 1 came twice: .*process"
	done
	[ "$(cat "$net_dir"/err.* | grep -c '^tutti WARN .*came twice')" = 1 ] ||
		die "two jobs at one address: it is not logged once"
	ok "two jobs at one address"
}

# Once the first job has met, the address is free for another one.
two_jobs_one_after_the_other()
{
	export TUTTI_COMM_ID=10.77.0.1:7711
	until_stop "0 1" "$stream" all_reduce 65536 "$net_dir/stop"
	await_begin "two jobs, one after the other"
	for rank in 0 1; do
		on $rank env TUTTI_RANK=$rank TUTTI_NRANKS=2 "$stream" all_reduce 65536 0.2 \
			>"$net_dir/out.second.$rank" 2>"$net_dir/err.second.$rank" &
		net_pids="$net_pids $!"
		second="${second:-} $!"
	done
	for pid in $second; do
		wait "$pid" || die "two jobs, one after the other: the second fails"
	done
	stop
	job_end || die "two jobs, one after the other: the first fails"
	ok "two jobs at one address, one after the other"
}

# For good, while nobody has set a time limit.
cable_is_cut()
{
	unset TUTTI_COMM_ID
	make_own_host
	until_stop "0 1 1" "$net_dir/own_host" "$stream" all_reduce 65536 "$net_dir/stop"
	await_begin "a cable is cut"
	link 1 0 down
	fails_soon "a cable is cut" 100000 "0 1 2" ", TUTTI_EPEER: .*\(cannot be reached any more\|its machine has not answered\)"
}

net_up 2
make_timed
export TUTTI_COMM_SECRET=0123456789abcdef TUTTI_SOCKET_FAMILY=AF_INET
names_that_do_not_resolve
port_to_meet_is_closed
other_ports_are_closed
two_jobs_at_one_address
two_jobs_one_after_the_other
cable_is_cut
echo "$passed passed, 0 failed"
