# SPDX-License-Identifier: BSD-3-Clause
"""What was measured, as values: rounds, the points they make, and files of them.

A file has one JSON object a line: {"about": ...}, the machine, the versions and the settings,
before what was measured with them; then what one round found for a mode, an operation, a number
of ranks and a size, or, where the rounds were put together, a point. Several files one after
another are a file, too. Times of a point are medians of the rounds, and ratios are medians of
each round's ratio; beside busy loops (mode "loaded") times, and 90th percentiles, are means."""
import json
import math
import statistics
import sys

TUTTI = ("tutti", "tutti-mem")
# As batches.h has them.
MODES = ("rewritten", "unchanged", "loaded")
# Where registered memory is to be faster than that of malloc.
REGISTERED_FROM = 1 << 20


def size_text(nbytes):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if nbytes >= unit and nbytes % unit == 0:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} B" if nbytes else "-"


def time_text(us):
    """Three digits: there are no more in a measurement."""
    if us is None:
        return "-"
    us = float(f"{us:.3g}")
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:.0f}"


def ratio_text(ratio):
    return f"{ratio:.2f}" if ratio else "-"


def rounded(value):
    return float(f"{value:.4g}")


def median(values):
    measured = [value for value in values if value]
    return rounded(statistics.median(measured)) if measured else None


def mean(values):
    measured = [value for value in values if value]
    return rounded(statistics.fmean(measured)) if measured else None


def median_ratio(over, under):
    """Of what was measured in the same round: what the machine does for minutes at a time, as
    moving its cores nearer to each other, does not count then."""
    return median([a / b if a and b else None for a, b in zip(over, under)])


def mean_ratio(over, under):
    over, under = mean(over), mean(under)
    return rounded(over / under) if over and under else None


def mode_of(value):
    """What was measured before there were modes was measured with the same buffers, unchanged."""
    return value.get("mode", "unchanged")


def key_of(value):
    return (mode_of(value), value.get("load", 0), value["operation"], value["nranks"],
            value["bytes"])


def second_of(mode):
    """What the programs say besides the figure that counts."""
    return "p90" if mode == "loaded" else "least"


def make_round(number, key, times, seconds):
    """times, seconds: both figures in us by library, None where it was given up."""
    mode, load, operation, nranks, nbytes = key
    value = {"round": number, "mode": mode, "operation": operation, "nranks": nranks,
             "bytes": nbytes, "us": times, second_of(mode): seconds}
    if mode == "loaded":
        value["load"] = load
    return value


def make_point(rounds):
    """rounds: what make_round() made for the same key, one for each round."""
    names = list(dict.fromkeys(name for value in rounds for name in value["us"]))
    loaded = mode_of(rounds[0]) == "loaded"
    typical, ratio_of = (mean, mean_ratio) if loaded else (median, median_ratio)
    times = {name: [value["us"].get(name) for value in rounds] for name in names}

    def best_over(mine):
        ratios = {name: ratio_of(times[name], mine) for name in names if name not in TUTTI}
        ratios = {name: ratio for name, ratio in ratios.items() if ratio}
        best = min(ratios, key=ratios.get) if ratios else None
        return best, ratios.get(best)

    point = {key: value for key, value in rounds[0].items()
             if key not in ("round", "us", "p90", "least")}
    point["rounds"] = len(rounds)
    point["us"] = {name: typical(times[name]) for name in names}
    if loaded:
        point["p90"] = {name: mean([value["p90"].get(name) for value in rounds])
                        for name in names}
    point["best_peer"], point["peer_over_tutti"] = best_over(times["tutti"])
    registered = times.get("tutti-mem", [])
    point["peer_over_registered"] = best_over(registered)[1]
    point["tutti_over_registered"] = ratio_of(times["tutti"], registered)
    return point


def values_of(path):
    """The objects of a file; a line that the end of a run has cut off is not one."""
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith("\n"):
                print(f"{path}:{number}: cut off, left out", file=sys.stderr)
                return
            try:
                value = json.loads(line)
                if "about" not in value:
                    key_of(value)
                    value["us"]["tutti"]
                yield value
            except (ValueError, KeyError, TypeError) as error:
                sys.exit(f"{path}:{number}: nothing that bench/compare/run writes: {error}")


def read(paths):
    """(abouts, points) of files; what comes twice counts as it was measured last."""
    abouts, points, rounds = [], {}, {}
    for path in paths:
        for value in values_of(path):
            if "about" in value:
                abouts.append(value["about"])
            elif "round" in value:
                rounds.setdefault(key_of(value), {})[value["round"]] = value
            else:
                points[key_of(value)] = value
    for key, mine in rounds.items():
        points[key] = make_point(list(mine.values()))
    return abouts, in_order(points.values())


def in_order(points):
    """Whatever order they were measured in: by mode, and otherwise as they come."""
    return sorted(points, key=lambda point: MODES.index(mode_of(point)))


def of_mode(points, mode):
    return [point for point in points if mode_of(point) == mode]


def geometric_mean(ratios):
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios)) if ratios else None


def ratios_of(points, key="peer_over_tutti"):
    return [point[key] for point in points if point.get(key)]


def registered_ratios_of(points):
    """How much faster Tutti is with memory of its own, where it is meant to be."""
    return ratios_of([point for point in points if point["bytes"] >= REGISTERED_FROM],
                     "tutti_over_registered")


def operations_of(points):
    return list(dict.fromkeys(point["operation"] for point in points))


def head(names):
    columns = "".join(f"{name:>12}" for name in names)
    return f"{'':>10}{'size':>8}{columns}{'peer/tutti':>12}{'peer/mem':>10}  best peer"


def row(point, names):
    columns = "".join(f"{time_text(point['us'].get(name)):>12}" for name in names)
    return (f"{mode_of(point):>10}{size_text(point['bytes']):>8}{columns}"
            f"{ratio_text(point['peer_over_tutti']):>12}"
            f"{ratio_text(point['peer_over_registered']):>10}  {point['best_peer'] or '-'}")
