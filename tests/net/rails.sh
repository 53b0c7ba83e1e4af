#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Several NICs as one: two hosts with two or three cables between them, all of which carry data, in
# proportion to their rates, without a word of configuration.
set -eu
cd "$(dirname "$0")"
. ./common
: "${TUTTI:?path of the tutti program}" "${BUILD:?where tests were built}"
stream=$BUILD/tests/net_stream

# at_least WHAT NUMBER BOUND
at_least()
{
	awk -v a="$2" -v b="$3" 'BEGIN { exit !(a >= b) }' || die "$1: $2, at least $3 is asked for"
}

# carried NAME SHARE...: of all that was sent since `count`, each rail has at least its share.
count()
{
	rail=0
	for _; do
		eval "sent_$rail=$(rail_bytes $rail)"
		rail=$((rail + 1))
	done
}

since()
{
	eval "echo \$(($(rail_bytes "$1") - sent_$1))"
}

carried()
{
	name=$1 rail=0 total=0
	shift
	for share; do
		total=$((total + $(since "$rail")))
		rail=$((rail + 1))
	done
	rail=0
	for share; do
		at_least "$name: the share of eth$rail of $total bytes" \
			"$(awk -v a="$(since $rail)" -v b="$total" 'BEGIN { printf "%.3f", a / b }')" \
			"$share"
		rail=$((rail + 1))
	done
}

# streams NAME HOSTS KIND SHARE...: over that many rails, once all are in use. They are so slow that even a busy
# machine keeps all of them full: how much each carries is then a matter of its rate, and how fast the
# machine is does not matter.
streams()
{
	name=$1
	until_stop "$2" "$stream" "$3" 1048576 "$net_dir/stop"
	shift 3
	rail=0
	for _; do
		await "$name: eth$rail is used" has_sent "$rail" 0 400000
		rail=$((rail + 1))
	done
	count "$@"
	await "$name: 4 MB are sent by eth0" has_sent 0 "$(rail_bytes 0)" 4000000
	carried "$name" "$@"
	stop
	job_end || die "$name"
}

equal_rails()
{
	net_rails 20 20
	streams "two equal rails" "0 1" send 0.3 0.3
	ok "two equal rails carry alike"
}

unequal_rails()
{
	net_rails 20 10 5
	streams "three unequal rails" "0 1" send 0.4 0.12 0.05
	ok "rails of 2.5, 1.25 and 0.6 MB/s carry by their rates"
}

collectives()
{
	net_rails 400 400
	for coll in all_reduce broadcast all_gather reduce_scatter send_recv; do
		job "0 0 1 1" "$TUTTI" perf $coll -b 8 -e 2M -f 64 -i 2 -w 1 --json ||
			die "$coll over two rails"
		! grep -q '"wrong":[1-9]' "$net_dir/out.0" || die "$coll over two rails: wrong"
		grep -q '"wrong":0' "$net_dir/out.0" || die "$coll over two rails: no results"
	done
	net_rails 40 40
	streams "collectives" "0 0 1 1" all_reduce 0.25 0.25
	ok "collectives of 2 x 2 ranks use both rails"
}

equal_rails
unequal_rails
collectives
echo "$passed passed, 0 failed"
