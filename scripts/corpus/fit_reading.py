#!/usr/bin/env python3
"""Fits the weights of signs in config/reader.toml to labelled documents, and cross-validates them.

    docmill eval DIR --keep KEPT --evidence FILE     for each folder of documents
    fit_reading.py FILE... [--field NAME] [--documents REPORT...] [--write]

Every line of FILE is one known field of one document: its candidates, the signs of each, and
whether it is right. Only the tune part of the families is fitted on; a line of the check part is
refused. The chance of a candidate is its share among all candidates of the document and of none of
them (a conditional logit); weights are pulled towards those in the file, so that a rare sign keeps
its weight. A family counts by the square root of its documents, so that twenty copies of one layout
do not outvote ten others.

Prints for each field how many documents are right, and how honest the certainty is: with the
weights of the file, as fitted, and with each family judged by weights that were fitted without it.
Only the last is to be quoted. Then the weights; --write puts them into the file. Needs tomlkit.

REPORT is the output of `docmill eval DIR --split tune --json` for the same documents: it adds how
many documents would not be flagged, and how many of those are wrong, with the weighed fields of
each document chosen by weights that were fitted without its family.
"""

import argparse
import collections
import hashlib
import json
import math
import pathlib

import tomlkit

READER = pathlib.Path(__file__).parents[2] / "config/reader.toml"
# The table of a field's weights; every other field's certainty is fitted with all others as `claim`.
TABLES = {"supplier_name": "name", "invoice_number": "number", "invoice_date": "issue_day", "due_date": "other_day"}
CLAIMS = "claim"
FOLDS = 6
# Reasons that depend on the certainty of fields.
OF_CERTAINTY = ("uncertain", "doubtful_reading")
LEVELS = (0, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.01)


def write_weights(table, weights, none):
    """Keeps order and comments of the file; a sign that it does not have comes last."""
    document = tomlkit.parse(READER.read_text(encoding="utf-8"))
    own = document["weights"][table]
    if table != CLAIMS:
        own["none"] = round(none, 1)
    for sign, value in weights.items():
        own["signs"][sign] = round(value, 1)
    READER.write_text(tomlkit.dumps(document), encoding="utf-8")


def read_lines(paths):
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            one = json.loads(line)
            if one["part"] != "tune":
                raise SystemExit(f"{path} holds documents of the check part: nothing is fitted on them")
            yield one


def shares(weights, none, candidates):
    scores = [sum(weights.get(sign, 0.0) for sign in signs) for _, signs in candidates] + [none]
    most = max(scores)
    parts = [math.exp(score - most) for score in scores]
    return [part / sum(parts) for part in parts]


def fitted(cases, start, none_start, moves_none, pull=0.05, steps=250):
    weights, none = dict(start), none_start
    families = collections.Counter(family for family, _ in cases)
    total = sum(1 / math.sqrt(families[family]) for family, _ in cases)
    hold = 100 * pull / max(1, len(cases))
    for _ in range(steps):
        gradient, of_none = collections.defaultdict(float), 0.0
        for family, candidates in cases:
            weight = 20 / math.sqrt(families[family]) / total
            chance = shares(weights, none, candidates)
            right = sum(p for p, (is_right, _) in zip(chance, candidates) if is_right)
            for p, (is_right, signs) in zip(chance, candidates):
                step = ((p / right if is_right else 0.0) - p) * weight if right else -p * weight
                for sign in signs:
                    gradient[sign] += step
            of_none += (0.0 if right else weight) - chance[-1] * weight
        for sign in set(gradient) | set(weights):
            own = weights.get(sign, 0.0)
            weights[sign] = own + 0.5 * (gradient[sign] - hold * (own - start.get(sign, 0.0)))
        if moves_none:
            none += 0.5 * (of_none - hold * (none - none_start))
    return weights, none


def judged(cases, weights, none):
    results = []
    for family, candidates in cases:
        chance = shares(weights, none, candidates)[:-1]
        best = max(range(len(chance)), key=chance.__getitem__, default=None)
        results.append((0.0, False) if best is None else (chance[best], candidates[best][0]))
    return results


def show(what, results):
    print(f"  {what}: {sum(right for _, right in results)} of {len(results)} right")
    for low, high in zip(LEVELS, LEVELS[1:]):
        own = [(p, right) for p, right in results if low <= p < high]
        if own:
            right, mean = (sum(values) / len(own) for values in zip(*((r, p) for p, r in own)))
            print(f"    {low:.2f}-{min(high, 1):.2f}: {len(own):4}  right {right:.2f}  said {mean:.2f}")


def fold_of(family):
    return hashlib.sha256(family.encode()).digest()[1] % FOLDS


def certainty_of(field, candidates, weights, none):
    """The certainty of what is chosen, and whether it is right; None where nobody knows."""
    chance = shares(weights, none, candidates)
    best = max(range(len(candidates)), key=chance.__getitem__, default=None)
    if field == "due_date" and not any(right for right, _ in candidates):
        return max(chance), None
    if best is None or not candidates[best][0]:
        return (0.0 if best is None else chance[best]), False
    return sum(p for p, (right, _) in zip(chance, candidates) if right), True


def show_documents(reports, judged_fields):
    levels = collections.defaultdict(lambda: [0, 0, 0, 0])
    for path in reports:
        for one in json.loads(pathlib.Path(path).read_text())["documents"]:
            if one["whole"] is None:
                continue
            fields = judged_fields.get(one["name"], {})
            wrong = {field for field in one["faults"] if "." not in field}
            for field, (_, right) in fields.items():
                if field in TABLES and right is not None:
                    (wrong.discard if right else wrong.add)(field)
            reasons = [reason.split(":") for reason in one.get("reasons", [])]
            other = [
                rule for rule, *field in reasons
                if rule not in OF_CERTAINTY or rule == "uncertain" and field[0] not in fields
            ]
            least = min((p for p, _ in fields.values()), default=1.0)
            for level in LEVELS[3:-1]:
                flagged = bool(other) or one["status"] != "completed" or least < level
                levels[level][2 * bool(wrong) + flagged] += 1
    print("documents, each family by the others")
    for level, (right, right_flagged, wrong, _) in sorted(levels.items()):
        print(
            f"    {level:.2f}: {right + wrong} not flagged, {wrong} of them wrong; "
            f"{right_flagged} of {right + right_flagged} right ones flagged"
        )


def fit_field(name, cases, table, documents):
    own = tomlkit.parse(READER.read_text(encoding="utf-8"))["weights"][table].unwrap()
    start, none, moves = own["signs"], own["none"], table != CLAIMS
    named, cases = cases, [case[:2] for case in cases]
    print(name)
    show("with the file's weights", judged(cases, start, none))
    weights, none_then = fitted(cases, start, none, moves)
    show("as fitted", judged(cases, weights, none_then))
    crossed = []
    for fold in range(FOLDS):
        others = [case for case in cases if fold_of(case[0]) != fold]
        own = [case for case in named if fold_of(case[0]) == fold]
        found = fitted(others, start, none, moves)
        crossed += judged([case[:2] for case in own], *found)
        for _, candidates, document, field in own:
            documents[document][field] = certainty_of(field, candidates, *found)
    show("each family by the others", crossed)
    print("  none of them", round(none_then, 1))
    print("  " + ", ".join(f"{sign} {value:.1f}" for sign, value in sorted(weights.items())))
    return weights, none_then


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("files", nargs="+")
    arguments.add_argument("--field")
    arguments.add_argument("--documents", nargs="+", default=[])
    arguments.add_argument("--write", action="store_true")
    given = arguments.parse_args()
    cases = collections.defaultdict(list)
    for one in read_lines(given.files):
        field = one["field"] if one["field"] in TABLES else "claims"
        candidates = [(c["right"], tuple(sorted(set(c["signs"])))) for c in one["candidates"]]
        cases[field].append((one["family"], candidates, one["document"], one["field"]))
    documents = collections.defaultdict(dict)
    for field, own in sorted(cases.items()):
        if given.field in (None, field):
            table = TABLES.get(field, CLAIMS)
            fitted_weights = fit_field(field, own, table, documents)
            if given.write:
                write_weights(table, *fitted_weights)
    if given.documents:
        show_documents(given.documents, documents)


if __name__ == "__main__":
    main()
