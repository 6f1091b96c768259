#!/usr/bin/env python3
"""Checks a Grafana board, and writes its expressions as recording rules for promtool to parse.

    check_board.py BOARD.json RULES.yaml

Panels must not share an id or a place, and each must have a title and something to show. The
board's variables are filled in as Grafana would. Standard library only.
"""

import json
import sys


def overlap(one, other):
    a, b = one["gridPos"], other["gridPos"]
    return (
        a["x"] < b["x"] + b["w"]
        and b["x"] < a["x"] + a["w"]
        and a["y"] < b["y"] + b["h"]
        and b["y"] < a["y"] + a["h"]
    )


def problems(board):
    panels = board["panels"]
    variables = {variable["name"] for variable in board["templating"]["list"]}
    for number, panel in enumerate(panels):
        name = panel.get("title") or f"panel {number}"
        if panel["type"] != "row" and not panel.get("targets"):
            yield f"{name} shows nothing"
        if panel["gridPos"]["x"] + panel["gridPos"]["w"] > 24:
            yield f"{name} is wider than the board"
        for other in panels[:number]:
            if panel["id"] == other["id"]:
                yield f"{name} has the id of {other['title']}"
            if overlap(panel, other):
                yield f"{name} lies on {other['title']}"
        for target in panel.get("targets", []):
            source = target["datasource"]["uid"]
            if source.strip("${}") not in variables:
                yield f"{name} takes its data from {source}, which is no variable of the board"


def expressions(board):
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"].replace("$namespace", "docmill")


def main(path, rules):
    with open(path, encoding="utf-8") as file:
        board = json.load(file)
    wrong = list(problems(board))
    for problem in wrong:
        print(f"{path}: {problem}", file=sys.stderr)
    made = [
        {"record": f"board:{number}", "expr": expression}
        for number, expression in enumerate(expressions(board))
    ]
    # JSON is YAML.
    with open(rules, "w", encoding="utf-8") as file:
        json.dump({"groups": [{"name": "board", "rules": made}]}, file)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
