#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# env: what is there, what is set, and what is misspelt.
. "$(dirname "$0")/common"

expect 0 "$TUTTI" env
says out '^ +variable +value +default +range +meaning$'
says out '^  TUTTI_SHM_SLOT +'
says out '^  TUTTI_DEBUG +'
lines err 0
count=$(grep -c '^[* ] TUTTI_' "$tmp/out")
[ "$count" -gt 10 ] || fail "only $count variables"
ok "the table"

TUTTI_SHM_SLOT=128K expect 0 "$TUTTI" env
says out '^\* TUTTI_SHM_SLOT +(128K|131072) +256K '
ok "what is set is marked"

expect 0 "$TUTTI" env --json
lines out "$count"
says out '^\{"variable":"TUTTI_SHM_SLOT","type":"[a-zA-Z]+","value":"[^"]+","default":"256K",'
TUTTI_SHM_SLOT=128K expect 0 "$TUTTI" env --json
says out '"TUTTI_SHM_SLOT".*"set":true\}$'
says out '"TUTTI_SHM_SLOTS".*"set":false\}$'
ok "--json"

expect 0 "$TUTTI" env --markdown
says out '^\| Variable \| '
says out '^\|---\|'
[ "$(grep -c '^| `TUTTI_' "$tmp/out")" -eq "$count" ] || fail "--markdown has not $count rows"
[ "$(sed 's/\\|//g; s/[^|]//g' "$tmp/out" | sort -u | wc -l)" -eq 1 ] || fail "cells are missing"
ok "--markdown"

document=$(dirname "$0")/../../docs/env.md
grep '^| `TUTTI_' "$document" >"$tmp/documented" || fail "docs/env.md has no table"
grep '^| `TUTTI_' "$tmp/out" | diff - "$tmp/documented" >"$tmp/err" ||
	fail "docs/env.md is not what --markdown prints"
ok "docs/env.md is up to date"

for format in '' --json; do
	TUTTI_COMM_SECRET=open-sesame expect 0 "$TUTTI" env $format
	! grep -q sesame "$tmp/out" "$tmp/err" || fail "the secret is printed"
done
ok "a secret is not shown"

TUTTI_SHM_SLTO=1 expect 0 "$TUTTI" env
says err 'TUTTI_SHM_SLTO.*TUTTI_SHM_SLOT'
ok "an unknown variable is reported with the nearest name"

TUTTI_SHM_SLOTS=1000 expect 0 "$TUTTI" env
says err 'TUTTI_SHM_SLOTS.*1000'
says out '^[* ] TUTTI_SHM_SLOTS +([0-9]+) +\1 '
ok "a value out of range is reported and not used"
