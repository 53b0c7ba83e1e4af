#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The scripts that one begins with: their help, what setup says to somebody who may not
# install, and that `make` asks for no tests.
. "$(dirname "$0")/common"

cd "$(dirname "$0")/../.." || exit 1

for script in demo check setup; do
	for help in -h --help; do
		expect 0 scripts/$script $help
		says out "scripts/$script"
		lines err 0
		! grep -q '^#' "$tmp/out" || fail "$script $help shows the comment as it stands"
	done
	expect 2 scripts/$script nonsense
	says err "usage: scripts/$script"
	lines out 0
done
ok "help and usage"

# A machine of a user without sudo, where nothing is installed; known: what apt-cache knows.
mkdir "$tmp/bin"
for program in sh sed sort tr cat env dirname grep printf; do
	ln -s "$(command -v $program)" "$tmp/bin/$program" 2>/dev/null
done
printf '#!/bin/sh\necho 1000\n' >"$tmp/bin/id"
printf '#!/bin/sh\necho "apt-get is not to be called" >&2\nexit 99\n' >"$tmp/bin/apt-get"
printf '#!/bin/sh\ncase " $known " in *" $2 "*) ;; *) exit 100 ;; esac\n' >"$tmp/bin/apt-cache"
chmod +x "$tmp/bin/id" "$tmp/bin/apt-get" "$tmp/bin/apt-cache"

base='cmake coinor-libclp-dev gcc libc6-dev libexpat1-dev libjansson-dev libsodium-dev make ninja-build pkg-config'
for known in '' "$base"; do
	export known
	expect 1 env PATH="$tmp/bin" scripts/setup
	says err 'needs root, and there is no sudo'
	says err '^    apt-get update$'
	says err "^    apt-get install -y --no-install-recommends $base\$"
	lines out 0
	lines err 3
done
known="$base git" expect 1 env PATH="$tmp/bin" scripts/setup check
says err '^    apt-get install .* gcc git libc6-dev '
ok "all that root has to do is said, and in one go"

# A tree that nobody has configured, and one that the demo has.
expect 0 make -n -B all
says out '^cmake --preset release -DTUTTI_TESTS=OFF -DTUTTI_BENCH=OFF$'
says out '^cmake --build --preset release --target tutti_installed$'
expect 0 make -n -B matrix
says out '^scripts/setup check$'
says out '^cmake -B build/release -DTUTTI_TESTS=ON$'
ok "make"
