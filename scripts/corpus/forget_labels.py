#!/usr/bin/env python3
"""Writes the built-in kinds down with a share of their labels left out, so that pages whose words are known
become pages of strangers again.

    forget_labels.py OUT [--share 0.15] [--seed 1]
    DOCMILL__KINDS__PATH=OUT docmill eval DIR

Whether a label is left out is drawn from the seed and its text, so the same one is out in every kind and
language that has it. What `docmill eval` says then is no measure of real strangers, whose layouts are new as
well; it shows which values go wrong without a flag once a word beside them is unknown. Rules made after a look
at what one seed shows are to be measured by another. `config/reader.toml`, signals and rules of the kinds stay
whole. Needs Python 3.11.
"""

import argparse
import hashlib
import json
import pathlib
import shutil
import tomllib

KINDS = pathlib.Path(__file__).parents[2] / "config/kinds"


def is_kept(label, seed, share):
    digest = hashlib.sha256(f"{seed} {label}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >= share * 2**32


def kept_labels(table, seed, share):
    """The table without what is left out; the languages of `strong` and `weak` hold lists of labels."""
    kept = {}
    for key, value in table.items():
        if isinstance(value, dict):
            kept[key] = kept_labels(value, seed, share)
        elif isinstance(value, list) and key != "include":
            kept[key] = [label for label in value if is_kept(label, seed, share)]
        else:
            kept[key] = value
    return kept


def write_section(out, name, section):
    print(f"\n[{name}]", file=out)
    for key, value in section.items():
        languages = value.items() if isinstance(value, dict) else [(None, value)]
        for language, one in languages:
            # Texts and lists of texts are written alike in JSON and TOML.
            print(f"{key}{'.' + language if language else ''} = {json.dumps(one, ensure_ascii=False)}", file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--share", type=float, default=0.15)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    shutil.copytree(KINDS, args.out)
    for path in sorted(args.out.glob("*/labels.toml")):
        table = kept_labels(tomllib.loads(path.read_text()), args.seed, args.share)
        with path.open("w") as out:
            for key in [key for key, value in table.items() if not isinstance(value, dict)]:
                print(f"{key} = {json.dumps(table[key])}", file=out)
            for name, section in table.items():
                if isinstance(section, dict):
                    write_section(out, name, section)


if __name__ == "__main__":
    main()
