#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# scripts/gpu_day: all that it will measure on a GPU runs on the driver on host memory, in small, and
# the page is made of what it has kept.
. "$(dirname "$0")/common"
root=$(cd "$(dirname "$0")/../.." && pwd)
day=$root/scripts/gpu_day
build=$(cd "$BUILD" && pwd)
into=$tmp/day

# Its programs are compiled without sanitizers, which a library with them does not stand.
if nm -D "$BUILD/src/libtutti.so" | grep -Eq ' U __(a|t)san_'; then
	echo "the library has sanitizers"
	exit 77
fi

expect 0 "$day" --list
lines err 0
minutes=$(awk '{ sum += $2 } END { print sum }' "$tmp/out")
[ "$minutes" -lt 30 ] || fail "the parts take $minutes minutes, more than there are"
parts='waits limits kernels ranks nccl host16 sanitizer soak'
expect 1 "$day" latency
says err 'there is no part latency'
expect 1 "$day" --write --into "$tmp/none"
ok "parts"

# A part is a command of its own, whose figures stay when another is measured.
for part in $parts; do
	expect 0 "$day" --dry "$part" --build "$build" --into "$into" --ranks 1,2,4
	[ -f "$into/$part.txt" ] || fail "$part has kept nothing"
	! grep -q 'is left out' "$tmp/err" ||
		[ "$part" = limits ] || [ "$part" = nccl ] || fail "of $part something is left out"
	! grep -q '| elements$' "$into/$part.txt" || ! grep '| elements$' "$into/$part.txt" | grep -qv '| 0 |' ||
		fail "$part has wrong elements"
	ok "$part"
done
for kind in plain registered; do
	for run in nccl.txt:libnccl\ of\ tutti ranks.txt:tutti; do
		grep -q "^${run#*:}, 4 ranks | calls | $kind, 4 KiB | [0-9.]* | us\$" "$into/${run%%:*}" ||
			fail "$run has no $kind calls"
	done
done

# What the other machine must have: as a library of the package says itself.
least=$(cd "$root/bench/gpu" && python3 -Bc 'import pathlib, pack, sys; print(*pack.least_glibc(pathlib.Path(sys.argv[1])))' "$into/bin")
[ "$least" = "$(find "$into/bin" -type f -exec sh -c 'objdump -T "$1" | sed -n "s/.*[( ]GLIBC_\([0-9.]*\).*/\1 ${1##*/}/p"' sh {} \; 2>"$tmp/err" |
	sort -V | tail -n 1)" ] || fail "the package needs another glibc than $least"
ok "the glibc that it needs"

# Peers that are not there are named; one that is here, of which this tells a minute a call, is compared.
mkdir "$tmp/peer"
for peer in openmpi mpich; do
	printf '#!/bin/sh\nexit 1\n' >"$tmp/peer/mpicc.$peer"
	printf '#!/bin/sh\necho "A peer 1.0"\n' >"$tmp/peer/mpirun.$peer"
done
cat >"$tmp/peer/program" <<'END'
#!/bin/sh
for n in $(echo "$4" | tr , ' '); do echo "$2 $n 6e7 6e7 1 1"; done
END
cat >"$tmp/peer/mpicc.openmpi" <<'END'
#!/bin/sh
while [ "$1" != -o ]; do shift; done
cp "$(dirname "$0")/program" "$2"
END
cat >"$tmp/peer/mpirun.openmpi" <<'END'
#!/bin/sh
[ "$1" != --version ] || { echo "A peer 1.0" && exit; }
while [ "$1" != -n ]; do shift; done
shift 2
exec "$@"
END
cp "$tmp/peer/mpicc.openmpi" "$tmp/peer/mpicc"
sed 's/A peer 1.0/mpirun (Open MPI) 5.0/' "$tmp/peer/mpirun.openmpi" >"$tmp/peer/mpirun"
chmod +x "$tmp"/peer/*
expect 0 env PATH="$tmp/peer:$PATH" "$root/bench/gpu/host.py" "$into/bin" --small
says out '^libraries \| openmpi \| A peer 1.0 \| -$'
says out '^libraries \| mpich \| its benchmark does not compile'
says out '^libraries \| mpi \| mpirun \(Open MPI\) 5.0 \| -$'
says out '^libraries \| 16 ranks \| left out'
for size in '8 B' '64 KB'; do
	says out "^2 ranks \\| broadcast, $size, tutti \\| [0-9.]+ \\| us\$"
	says out "^2 ranks \\| broadcast, $size, openmpi \\| 60000000 \\| us\$"
	says out "^2 ranks \\| broadcast, $size, mpi \\| 60000000 \\| us\$"
	says out "^2 ranks \\| broadcast, $size, best peer / tutti \\| [1-9][0-9.]+ \\| -\$"
done
ln -sf mpirun.openmpi "$tmp/peer/mpirun"
expect 0 env PATH="$tmp/peer:$PATH" "$root/bench/gpu/host.py" "$into/bin" --small
says out '^libraries \| mpi \| is openmpi \| -$'
ok "peers on a host"

# On the driver on host memory it is known which calls wait.
waits()
{
	verdict=$1
	shift
	for call; do
		says out "^[^|]* \\| $call\\(\\)[a-z ]* \\| $verdict \\| [0-9.]+ us\$"
	done
}
for wait in 0 1; do
	expect 0 env TUTTI_CUDAHOST_WAIT=$wait TUTTI_CUDAHOST_GPUS=1 TUTTI_CUDA_LIB="$build/lib/tutti/cuda/libcuda.so.1" \
		"$build/bench/gpu/waits" cuMemAlloc cuMemHostAlloc cuLibraryLoadData cuEventRecord cuStreamQuery
	waits 'returns while a kernel runs' cuMemAllocAsync cuEventRecord cuStreamQuery
	[ $wait = 1 ] && verdict='waits until kernels end' || verdict='returns while a kernel runs'
	waits "$verdict" cuMemAlloc cuMemHostAlloc cuLibraryLoadData
done
! grep -q 'cuMemFree' "$tmp/out" || fail "a call that nobody asked for"
sed 's/^waits | //' "$into/waits.txt" >"$tmp/out"
says out '^device \| .*host memory.* \| [0-9.]+ \| CUDA$'
says out '^- \| cuMemFree\(\) \| waits until kernels end \|'
says out '\| cuMemFree\(\), the kernel on another GPU \| returns while a kernel runs \|'
says out '\| cuCtxEnablePeerAccess\(\) \| returns while a kernel runs \|'
! grep -q '| fails |' "$tmp/out" || fail "a call fails"
expect 1 env TUTTI_CUDAHOST_VMM=0 TUTTI_CUDA_LIB="$build/lib/tutti/cuda/libcuda.so.1" "$build/bench/gpu/waits" cuMemMap
says out '\| cuMemMap\(\) \| fails \| error 801$'
says err '^cuMemCreate\(\) fails$'
ok "which calls wait"

# Figures of no GPU are not written into the page; into another they are.
cp "$root/docs/gpu.md" "$tmp/page"
expect 1 "$day" --write --into "$into"
says err 'figures of --dry'
cmp "$root/docs/gpu.md" "$tmp/page" || fail "the page was changed"
expect 0 "$day" --write --into "$into" --document "$tmp/page"
says out 'calls'
grep -Eq '^\| plain, 8 B \| us( \| not measured){2}( \| [0-9.]+){2} \| not measured( \| [0-9.]+){2} \| not measured \|$' \
	"$tmp/page" || fail "the page has no calls"
for kernel in '8 B, exchange by words, of a graph' '1 MiB, in memory' 'drawn calls whose bytes'; do
	grep -q "^| $kernel" "$tmp/page" || fail "the page does not have $kernel"
done
! grep -q '^Not measured' "$tmp/page" || fail "a block of the page was not written"
expect 0 "$day" --write --into "$into" --document "$tmp/page"
grep -q '^| cudaMemcpyAsync() of 1 GiB |' "$tmp/page" || fail "what was not measured here is gone"
ok "the page"

# A step that fails is named, the others run, and no result is made up.
mkdir "$tmp/bin"
printf '#!/bin/sh\necho "calls | plain, 8 B | 1 | us"; echo a reason >&2; exit 3\n' >"$tmp/bin/nccl_ranks"
chmod +x "$tmp/bin/nccl_ranks"
mkdir -p "$tmp/bin/lib/tutti/nccl"
touch "$tmp/bin/lib/tutti/nccl/libnccl.so.2"
expect 1 "$day" nccl --programs "$tmp/bin" --into "$tmp/failed" --ranks 2,4
says err 'libnccl of tutti, 2 ranks: status 3: a reason'
says err 'libnccl of tutti, 4 ranks: status 3: a reason'
expect 1 "$day" nccl --programs "$tmp/bin" --into "$tmp/failed" --seconds 0
says err 'no time is left for it'
ok "what fails"
