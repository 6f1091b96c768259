#!/usr/bin/env python3
"""Compares what the Helm chart renders with what Kustomize renders: the same objects, field by field.

    compare_chart.py CHART.yaml KUSTOMIZE.yaml

Left out of the comparison: the Namespace (Helm is told it), what KEDA's operator takes (the chart has
none), Helm's own annotations, and how a changed ConfigMap rolls the workers (a hash in its name, or in
an annotation).
"""

import re
import sys

import yaml


def load_objects(path):
    found = {}
    for document in yaml.safe_load_all(open(path, encoding="utf-8")):
        if not document or document["kind"] in ("Namespace", "ScaledObject"):
            continue
        normalise(document)
        found[f"{document['kind']} {document['metadata']['name']}"] = document
    return found


def normalise(document):
    document["metadata"].pop("namespace", None)
    if document["kind"] == "ConfigMap":
        document["metadata"]["name"] = strip_hash(document["metadata"]["name"])
    walk(document)


def strip_hash(name):
    return re.sub(r"^(docmill-(?:settings|file|web-file))-[0-9a-z]{10}$", r"\1", name)


def walk(value):
    if isinstance(value, list):
        for one in value:
            walk(one)
    if not isinstance(value, dict):
        return
    if "annotations" in value:
        kept = {
            key: text
            for key, text in (value["annotations"] or {}).items()
            if not key.startswith(("helm.sh/", "docmill/settings"))
        }
        value["annotations"] = kept
        if not kept:
            del value["annotations"]
    for key in ("configMapRef", "configMap"):
        if isinstance(value.get(key), dict) and "name" in value[key]:
            value[key]["name"] = strip_hash(value[key]["name"])
    for one in value.values():
        walk(one)


def differences(one, other, place):
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(set(one) | set(other)):
            yield from differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (left, right) in enumerate(zip(one, other)):
            yield from differences(left, right, f"{place}[{at}]")
    elif one != other:
        yield f"{place}: the chart has {one!r}, Kustomize {other!r}"


def main():
    chart, kustomize = load_objects(sys.argv[1]), load_objects(sys.argv[2])
    assert len(kustomize) > 8, sorted(kustomize)
    wrong = [
        line
        for name in sorted(set(chart) | set(kustomize))
        for line in differences(chart.get(name), kustomize.get(name), name)
    ]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
