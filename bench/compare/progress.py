# SPDX-License-Identifier: BSD-3-Clause
"""How long a comparison will still take: by a model before anything was measured, then by what
earlier rounds took."""
import contextlib
import time

# Of the model: a process group starts and ends, and a byte of a rank's two buffers is touched for
# the first time, written and checked; seconds, found on two cores.
START = 0.3
PER_BYTE = 1.5e-9


def modelled(unit, nlibraries, options):
    """Seconds of one round of an operation and a number of ranks."""
    _, operation, nranks = unit
    sizes = [0] if operation == "barrier" else options.sizes
    measuring = 1.5 * options.seconds * len(options.modes) * len(sizes)
    return nlibraries * (START + measuring + PER_BYTE * nranks * sum(sizes))


class Progress:
    """units: (round, operation, ranks), in the order in which they will be measured."""

    def __init__(self, units, nlibraries, options):
        self.units = list(units)
        self.model = {unit: modelled(unit, nlibraries, options) for unit in units}
        self.took = {}

    def expected(self, unit):
        """What it took in the last round; else the model, corrected by how wrong it was."""
        before = [took for (_, *what), took in self.took.items() if what == list(unit[1:])]
        if before:
            return before[-1]
        modelled_so_far = sum(self.model[unit] for unit in self.took)
        wrong = sum(self.took.values()) / modelled_so_far if modelled_so_far else 1
        return self.model[unit] * wrong

    def minutes_left(self):
        return sum(self.expected(unit) for unit in self.units) / 60

    @contextlib.contextmanager
    def unit(self):
        """The next one is measured."""
        unit = self.units.pop(0)
        start = time.monotonic()
        yield
        self.took[unit] = time.monotonic() - start
