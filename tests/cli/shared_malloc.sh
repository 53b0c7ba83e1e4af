#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# run --shared-malloc: an unmodified program's collectives go where its memory lies.
. "$(dirname "$0")/common"

# Sanitizers have a malloc of their own, before which none can be preloaded.
if nm -D "$BUILD/src/libtutti.so" | grep -Eq ' U __(a|t)san_'; then
	expect 1 "$TUTTI" run -n 1 --shared-malloc true
	says err '--shared-malloc needs .*libtutti_malloc.so: No such file'
	echo "the library has sanitizers"
	exit 77
fi

user=$BUILD/tests/cli_malloc_user
# Ordinary memory goes through slots.
export TUTTI_REACH=slots

for n in 2 4; do
	expect 0 "$TUTTI" run -n $n "$user"
	[ "$(sort -u "$tmp/out")" != memory ] || fail "memory that is not shared is reached in place"
	expect 0 "$TUTTI" run -n $n --shared-malloc "$user"
	[ "$(sort -u "$tmp/out")" = memory ] || fail "memory is not reached in place"
	lines err 0
done
ok "malloc, fork and an all_reduce in place"

expect 0 "$TUTTI" run -n 2 --shared-malloc sh -c 'LD_PRELOAD=; exec "$0"' "$user"
[ "$(sort -u "$tmp/out")" != memory ] || fail "it is preloaded by other ways than LD_PRELOAD"
TUTTI_SHARED_MALLOC_LEAST=8M expect 0 "$TUTTI" run -n 2 --shared-malloc "$user"
[ "$(sort -u "$tmp/out")" != memory ] || fail "less than TUTTI_SHARED_MALLOC_LEAST is shared"
TUTTI_SHM_HEAP=0 expect 0 "$TUTTI" run -n 2 --shared-malloc "$user"
ok "without room it is the C library's malloc"

expect 0 "$TUTTI" run -n 1 --shared-malloc sh -c 'echo "$LD_PRELOAD"'
[ -f "$(cat "$tmp/out")" ] || fail "what is preloaded is not there"
LD_PRELOAD=libc.so.6 expect 0 "$TUTTI" run -n 1 --shared-malloc sh -c 'echo "$LD_PRELOAD"'
says out ':libc.so.6$'
ok "what the user preloads stays"
