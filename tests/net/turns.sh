#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A NIC fails that carries the last message of a call, while the rank that sent it is in a call on another
# communicator, or in none: the message is sent again over another NIC all the same.
set -eu
cd "$(dirname "$0")"
. ./common
: "${BUILD:?where tests were built}"
turns=$BUILD/tests/net_turns

# The NIC of the first lane of a link: the one that all goes by where there is no other lane yet.
first_rail()
{
	if [ "$(rail_bytes 0)" -gt "$(rail_bytes 1)" ]; then echo 0; else echo 1; fi
}

# try_once NAME KIND SIZE SENDER: with the NIC down from before the message on. Whether it was to carry any.
try_once()
{
	net_rails 0 0
	rm -f "$net_dir/ready" "$net_dir/down" "$net_dir/received"
	job_begin "0 1" "$turns" "$2" "$3" "$4" "$net_dir"
	await "$1: both are ready" test -e "$net_dir/ready"
	rail=1
	[ "$3" = long ] || rail=$(first_rail)
	link 1 "$rail" down
	: >"$net_dir/down"
	job_end || die "$1"
	for rank in 0 1; do
		grep -q '^right$' "$net_dir/out.$rank" || die "$1: rank $rank is wrong"
	done
	grep -q '^lanes were lost [1-9]' "$net_dir/out.$4"
}

# arrives NAME KIND SIZE SENDER: a message may happen to go by the other NIC alone, which tries nothing.
arrives()
{
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		! try_once "$@" || { ok "$1"; return; }
	done
	die "$1: no lane was lost"
}

export TUTTI_TIMEOUT_MS=${TUTTI_TIMEOUT_MS:-90000}
for sender in 0 1; do
	arrives "rank $sender waits on another communicator" turns long $sender
	arrives "rank $sender waits on another communicator, one lane" turns short $sender
	arrives "rank $sender computes" compute long $sender
	arrives "rank $sender computes, one lane" compute short $sender
	arrives "rank $sender waits in a stream" stream long $sender
done
echo "$passed passed, 0 failed"
