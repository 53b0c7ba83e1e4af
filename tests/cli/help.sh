#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Every verb explains itself, and what is no verb is said to be none.
. "$(dirname "$0")/common"

expect 0 "$TUTTI" --help
cp "$tmp/out" "$tmp/verbs"
for verb in perf ping run show topo paths plan tune doctor env version; do
	grep -Eq "^  $verb +[a-z]" "$tmp/verbs" || fail "--help does not list $verb"
	for option in --help -h; do
		expect 0 "$TUTTI" "$verb" $option
		says out "^tutti $verb: "
		says out "^Usage: tutti $verb"
		says out '--json'
		lines err 0
	done
	ok "$verb --help"
done
[ "$(grep -Ec '^  [a-z]+ +' "$tmp/verbs")" -eq 12 ] || fail "--help lists what is not there"
ok "the list of verbs is that of the verbs"

expect 0 "$TUTTI" help
cmp -s "$tmp/out" "$tmp/verbs" || fail "help lists other verbs than --help"
for verb in perf 'topo lint'; do
	# shellcheck disable=SC2086
	expect 0 "$TUTTI" $verb --help
	cp "$tmp/out" "$tmp/verb"
	# shellcheck disable=SC2086
	expect 0 "$TUTTI" help $verb
	cmp -s "$tmp/out" "$tmp/verb" || fail "help $verb is not $verb --help"
done
expect 2 "$TUTTI" help perv
says err "no verb 'perv'; is perf meant"
ok "help, and help of a verb"

expect 2 "$TUTTI"
says err '^  perf '
lines out 0
ok "alone it lists the verbs, and that is bad usage"

expect 2 "$TUTTI" perv
says err "no verb 'perv'; is perf meant\?"
ok "an unknown verb is named"

expect 0 "$TUTTI" version
says out '^tutti [0-9]+\.[0-9]+\.[0-9]+$'
expect 0 "$TUTTI" -V
says out '^tutti [0-9]+\.[0-9]+\.[0-9]+$'
expect 0 "$TUTTI" version --json
says out '^\{"name":"tutti","version":"[0-9.]+","number":[0-9]+\}$'
ok "version"

if [ -w /dev/full ]; then
	status=0
	"$TUTTI" env >/dev/full 2>"$tmp/err" || status=$?
	[ $status = 1 ] || fail "writing to a full disk gave exit code $status"
	says err 'output failed'
	ok "a full disk does not look like success"
fi
