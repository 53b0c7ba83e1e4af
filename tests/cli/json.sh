#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# docs/json.md has every key that the verbs print which it is about.
. "$(dirname "$0")/common"
page=$(dirname "$0")/../../docs/json.md

command -v python3 >/dev/null || {
	echo "python3 is not here"
	exit 77
}

# keys_of SECTION COMMAND...: what it prints is JSON, a value a line or one in all, whose keys stand
# in that section in backticks. Keys of objects that are named by algorithms or constants do not count.
keys_of()
{
	section=$1
	shift
	expect "${status_wanted:-0}" "$@"
	awk -v section="## $section" '/^## / { on = $0 == section } on' "$page" >"$tmp/section"
	python3 - "$tmp/out" "$tmp/section" >"$tmp/missing" 2>"$tmp/err" <<-'END' || fail "no JSON: $*"
		import json, re, sys
		text = open(sys.argv[1]).read()
		known = set(re.findall(r"`([a-z0-9_]+)`", open(sys.argv[2]).read()))
		keys = set()
		def walk(value, named_by_data=False):
		    if isinstance(value, dict):
		        for key, inner in value.items():
		            if not named_by_data:
		                keys.add(key)
		            walk(inner, key in ("predicted", "constants") and not named_by_data)
		    elif isinstance(value, list):
		        for inner in value:
		            walk(inner)
		decoder, at, n = json.JSONDecoder(), 0, 0
		while text[at:].strip():
		    at += len(text[at:]) - len(text[at:].lstrip())
		    value, at = decoder.raw_decode(text, at)
		    walk(value)
		    n += 1
		assert n and keys
		print("\n".join(sorted(keys - known)), end="")
	END
	[ ! -s "$tmp/missing" ] || fail "docs/json.md, $section: it lacks $(tr '\n' ' ' <"$tmp/missing")"
	shift
	ok "$section: $*"
}

keys_of perf "$TUTTI" perf all_reduce -n 2 -b 8 -e 16 --json
keys_of perf "$TUTTI" perf handoff -n 2 -b 8 -e 8 --json
keys_of ping "$TUTTI" ping -n 2 --seconds 0.01 --json
keys_of run "$TUTTI" run -n 2 --json true
status_wanted=143 keys_of run "$TUTTI" run -n 2 --json sh -c 'test "$TUTTI_RANK" = 0 || kill -15 $$; sleep 300'
keys_of show "$TUTTI" show all_reduce --json
keys_of show "$TUTTI" show all_reduce --algorithm ring -n 3 --json
"$TUTTI" show all_reduce --algorithm ring -n 3 >"$tmp/ring"
keys_of show "$TUTTI" show --check "$tmp/ring" --json
keys_of tune "$TUTTI" tune --table --json
keys_of tune "$TUTTI" tune --file --json
status_wanted=1 keys_of doctor env TUTTI_CUDA_LIB="$BUILD/tests/cuda/libfake_cuda_apart.so" "$TUTTI" doctor --json
keys_of env "$TUTTI" env --json
keys_of version "$TUTTI" version --json
