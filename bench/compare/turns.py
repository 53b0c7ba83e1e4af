# SPDX-License-Identifier: BSD-3-Clause
"""Libraries take turns: one process group of each in every round, over all sizes of one operation
and one number of ranks, so that what else happens on the machine hits all of them."""
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time

# A peer that took this many times as long as the fastest is not asked again: it cannot be the
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
    """The figures in us by size, as long as each comes in time; and whether one did not."""
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
                    figures[int(words[1])] = float(words[2])
                    deadline = time.monotonic() + timeout


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


def measure(library, nranks, operation, sizes, options):
    """The medians of one process group (of each variant: the best) by size. What takes too long or
    fails is given up for that size and larger ones, with a word on stderr."""
    best = {}
    for variant in library.variants_of(operation):
        with tempfile.TemporaryDirectory() as scratch:
            arguments = [operation, "unchanged", str(options.seconds),
                         ",".join(str(size) for size in sizes)]
            figures, why = run_group(library.command(nranks, arguments, variant, scratch),
                                     library.environment(nranks), options.timeout)
        missing = [size for size in sizes if size not in figures]
        if missing:
            print(f"{library.name}, {operation}, {nranks} ranks, {missing[0]} bytes: given up: "
                  f"{why or 'no figure'}", file=sys.stderr, flush=True)
        for size, us in figures.items():
            best[size] = min(us, best.get(size, us))
    return best


def is_hopeless(library, size, samples):
    """Whether there is no use in asking `library` for `size` again."""
    first = samples[library.name][size][0]
    firsts = [of_size[size][0] for of_size in samples.values() if of_size[size][0]]
    return not first or not library.is_tutti and first > HOPELESS * min(firsts)


def run_turns(libraries, nranks, operation, sizes, options):
    """By size and name of library the us of each round, None where it was given up."""
    samples = {library.name: {size: [] for size in sizes} for library in libraries}
    for turn in range(options.rounds):
        # Nobody is always the first, nor always behind the same other.
        at = turn % len(libraries)
        for library in libraries[at:] + libraries[:at]:
            mine = samples[library.name]
            wanted = [size for size in sizes
                      if turn == 0 or not is_hopeless(library, size, samples)]
            figures = measure(library, nranks, operation, wanted, options) if wanted else {}
            for size in sizes:
                mine[size].append(figures.get(size))
    return {size: {name: mine[size] for name, mine in samples.items()} for size in sizes}
