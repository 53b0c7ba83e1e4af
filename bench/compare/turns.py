# SPDX-License-Identifier: BSD-3-Clause
"""Libraries take turns: one process group of each in every round, over all modes and sizes of one
operation and one number of ranks, so that what else happens on the machine hits all of them."""
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time

import points

# A peer that took this many times as long as the fastest peer is not asked again: it cannot be the
# best, and one that waits for time slices would take most of the time of the whole comparison.
HOPELESS = 5


def stop(process):
    """End what a time-out or Ctrl-C has left, launcher and ranks."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=3)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            pass
    # Ranks of a launcher that is gone.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def read_points(process, timeout):
    """Two figures in us by (mode, size), as long as each comes in time; and whether one did not.
    The first is what counts; the second is the least, beside busy loops the 90th percentile."""
    figures = {}
    pending = b""
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0, deadline - time.monotonic())):
                return figures, True
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                return figures, False
            *lines, pending = (pending + data).split(b"\n")
            for words in (line.split() for line in lines):
                if len(words) == 6:
                    figures[words[0].decode(), int(words[1])] = float(words[2]), float(words[3])
                    deadline = time.monotonic() + timeout


def beside_loops(command, count):
    """The command beside so many processes that do nothing but want a core, as data loaders and
    threads of a program do. They belong to the session of the job, since a scheduler that groups
    by session (autogroup) would otherwise keep them off while a rank yields to its neighbours, and
    to its process group, with which they are ended."""
    loops = 'n=$1; shift; while [ "$n" -gt 0 ]; do ' \
        '(while :; do :; done) >/dev/null 2>&1 & n=$((n - 1)); done; exec "$@"'
    return ["sh", "-c", loops, "sh", count, *command] if count else command


def run_group(command, environment, timeout):
    """The figures of one process group, and why there are no more, if so."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
                                   env={**os.environ, **environment})
        try:
            figures, late = read_points(process, timeout)
            # Some end late though all is measured, and some not at all.
            if not late:
                process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            stop(process)
            process.stdout.close()
        if late:
            return figures, f"more than {timeout:g} s"
        if process.returncode:
            errors.seek(0)
            text = errors.read().decode(errors="replace").strip()
            return figures, f"exit code {process.returncode}\n{text[-2000:]}"
    return figures, None


def measure(library, nranks, operation, sizes, modes, options):
    """The figures of one process group (of each variant: the best) by (mode, size). What takes too
    long or fails is given up for that size and larger ones, with a word on stderr."""
    best = {}
    for variant in library.variants_of(operation):
        with tempfile.TemporaryDirectory() as scratch:
            arguments = [operation, ",".join(modes), str(options.seconds),
                         ",".join(str(size) for size in sizes)]
            command = library.command(nranks, arguments, variant, scratch)
            figures, why = run_group(beside_loops(command, options.load),
                                     library.environment(nranks), options.timeout)
        missing = [key for key in keys_of(sizes, options) if key not in figures]
        if missing:
            print(f"{library.name}, {operation}, {nranks} ranks, {missing[0][1]} bytes, "
                  f"{missing[0][0]}: given up: {why or 'no figure'}", file=sys.stderr, flush=True)
        for key, figure in figures.items():
            best[key] = min(figure, best.get(key, figure))
    return best


def keys_of(sizes, options):
    return [(mode, size) for size in sizes for mode in options.modes]


def why_not(library, options):
    """None if the library can do a barrier of two ranks, else why it cannot."""
    with tempfile.TemporaryDirectory() as scratch:
        arguments = ["barrier", "unchanged", "0.001", "0"]
        figures, why = run_group(
            library.command(2, arguments, library.variants_of("barrier")[0], scratch),
            library.environment(2), options.timeout)
    return None if figures else f"does not run: {why or 'no figure'}"


def is_hopeless(library, key, first):
    """Whether there is no use in asking `library` again for a mode and size; first: the second
    figure that the first round found for it, by library. (The least, as one batch in two that
    waited for a time slice shall not end it for a library; beside busy loops all wait.)"""
    mine = first[key].get(library.name)
    peers = [us for name, us in first[key].items() if us and name not in points.TUTTI]
    return not mine or not library.is_tutti and mine > HOPELESS * min(peers)


def run_round(libraries, turn, nranks, operation, sizes, options, first):
    """One round: {(mode, size): {name: both figures}}, without what was given up.
    first: {(mode, size): {name: second figure}} of the first round, or None in that."""
    found = {key: {} for key in keys_of(sizes, options)}
    # Nobody is always the first, nor always behind the same other, and no mode either.
    at = turn % len(libraries)
    modes = options.modes[::-1] if turn % 2 else options.modes
    for library in libraries[at:] + libraries[:at]:
        wanted = [size for size in sizes
                  if not first or not all(is_hopeless(library, (mode, size), first)
                                          for mode in options.modes)]
        if not wanted:
            continue
        for key, figures in measure(library, nranks, operation, wanted, modes,
                                    options).items():
            found[key][library.name] = figures
    return found
