#!/usr/bin/env python3
"""Fits the weights of the gate's score (config/score.toml) to errors put into known truth.

    fit_score.py DOCMILL DIR [--fit 101,102,103] [--report 1,2]

DIR is a folder for `docmill eval --inject`. The constants are fitted on some seeds, the errors of
which are others than those of the seeds that are reported on. Right extractions weigh as much as
faulty ones. Four numbers are fitted, no more: the log-odds of data that no rule objects to, what a
refusing and what a flagging rule takes off, and what illegible letters take off. A rule that has a
`weight` of its own keeps it in the gate, and counts as its sort here.

Prints area under the ROC curve and expected calibration error (ten bins of equal width) with the
constants as they are and as they would be.
"""

import argparse
import collections
import json
import math
import pathlib
import subprocess
import tomllib

NAMES = ("certainty", "refused", "flagged", "illegible")
SOURCE = pathlib.Path(__file__).parents[2] / "config/score.toml"


def judgements(docmill, folder, seeds):
    points = []
    for seed in seeds:
        command = [docmill, "eval", folder, "--inject", "--split", "tune", "--seed", str(seed), "--json"]
        report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        points += [(terms(one), one["right"]) for one in report["judgements"]]
    right = sum(1 for _, is_right in points if is_right)
    wrong = len(points) - right
    # Many judgements are alike: each sort once, with the weight of all.
    weights = collections.Counter()
    for x, is_right in points:
        weights[(x, is_right)] += 0.5 / (right if is_right else wrong)
    return [(x, is_right, weight) for (x, is_right), weight in weights.items()]


def terms(judgement):
    graver = [consequence != "flag" for consequence in judgement["rules"].values()]
    return (1.0, -sum(graver), -(len(graver) - sum(graver)), -(1.0 - judgement["least"]))


def share(constants, x):
    log_odds = sum(a * b for a, b in zip(constants, x))
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, log_odds))))


def fitted(points, start):
    """Gradient descent on the weighted cross-entropy; a little pull towards the start keeps what
    the errors say nothing about where it was."""
    constants = list(start)
    for _ in range(4000):
        gradient = [0.002 * (own - at) for own, at in zip(constants, start)]
        for x, is_right, weight in points:
            off = (share(constants, x) - is_right) * weight
            for index, value in enumerate(x):
                gradient[index] += off * value
        constants = [max(0.0, own - 4.0 * step) for own, step in zip(constants, gradient)]
    return constants


def area(points, constants):
    scored = [(share(constants, x), is_right, weight) for x, is_right, weight in points]
    good = [(score, weight) for score, is_right, weight in scored if is_right]
    bad = [(score, weight) for score, is_right, weight in scored if not is_right]
    ahead = sum(
        w * v * (1.0 if a > b else 0.5 if a == b else 0.0) for a, w in good for b, v in bad
    )
    return ahead / (sum(w for _, w in good) * sum(w for _, w in bad))


def calibration_error(points, constants):
    bins = [[0.0, 0.0, 0.0] for _ in range(10)]
    for x, is_right, weight in points:
        score = share(constants, x)
        own = bins[min(9, int(score * 10))]
        own[0] += weight
        own[1] += weight * score
        own[2] += weight * is_right
    return sum(abs(score - right) for _, score, right in bins) / sum(own[0] for own in bins)


def present():
    weights = tomllib.loads(SOURCE.read_text())
    return [weights[name] for name in NAMES]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("docmill")
    arguments.add_argument("folder")
    arguments.add_argument("--fit", default="101,102,103")
    arguments.add_argument("--report", default="1,2")
    given = arguments.parse_args()
    fit, report = (
        [int(seed) for seed in text.split(",")] for text in (given.fit, given.report)
    )
    if set(fit) & set(report):
        raise SystemExit("a seed that was fitted to says nothing about the fit")
    points = judgements(given.docmill, given.folder, fit)
    held_back = judgements(given.docmill, given.folder, report)
    now = present()
    then = [round(value, 1) for value in fitted(points, now)]
    for what, constants in (("as they are", now), ("as fitted", then)):
        values = ", ".join(f"{name} {value}" for name, value in zip(NAMES, constants))
        print(f"{what}: {values}")
        for name, own in (("fitted on", points), ("held back", held_back)):
            print(
                f"  {name}: AUROC {area(own, constants):.3f}, "
                f"calibration error {calibration_error(own, constants):.3f}"
            )


if __name__ == "__main__":
    main()
