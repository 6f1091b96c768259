#!/usr/bin/env python3
"""Takes predicates out of the rules reader and reports which ones no page needs.

    scripts/corpus/ablate.py WORK TRANSCRIPTS TRUTH [--seconds N]

WORK is a new folder for a copy of the libraries that the rules need; TRANSCRIPTS holds stored transcripts
(`FAMILY__NAME.pdf.json`, from `docmill transcribe --format json`), TRUTH has FAMILY/truth/NAME.json, as
scripts/corpus/draw_corpus.py writes them. Needs tree-sitter and tree-sitter-rust (pip).

Into each function that returns a bool or an Option, each `if`, match guard, operand of `&&` and `||`, and
fallback (`or`, `or_else`, `chain`, `then`) that calls a predicate goes a run-time switch. One optimised build
then reads the corpus in process: first whole, then with all predicates off. For each page that is now wrong
without a flag, or on which the reader panics, the predicates that it needs are put back, found by bisection;
then those of pages in families whose F1 fell by more than .01, or of whose right documents more than .02 became
flagged; again until every bar holds. WORK/journal.txt has one line for each predicate (`out` or `kept`, file and line),
WORK/report.txt the figures by family before and after.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess

import tree_sitter
import tree_sitter_rust

REPO = pathlib.Path(__file__).resolve().parents[2]
CRATES = ["core", "formats", "gate"]
# Geometry and weights: no predicates about documents.
LEFT_OUT = {"layout.rs", "slope.rs", "sign.rs", "certainty.rs", "weighing.rs", "evidence.rs", "vocabulary.rs", "parameters.rs",
            "style.rs", "characters.rs"}
# Bounds, page numbers and legibility guard against input that the corpus does not have.
GUARD = re.compile(r"\bpage\b|MAX_|MIN_|is_finite|confidence|from_picture|unwitnessed|checked_")
OPERANDS = {"&&": "and", "||": "or"}
CALLS = {"filter": "and", "find": "and", "take_while": "and", "all": "and", "is_some_and": "and", "any": "or",
         "skip_while": "or", "is_none_or": "or"}
MIN_OPERAND_CHARS, MIN_BRANCH_CHARS = 75, 60
PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))


def text_of(node):
    return node.text.decode()


def has_let(node):
    if node.type in ("let_condition", "let_chain"):
        return True
    inner = node.type in ("binary_expression", "parenthesized_expression")
    return inner and any(has_let(child) for child in node.children)


class Instrumenter:
    """Inserts the switches into one file."""

    def __init__(self, path, predicates, sites):
        self.path, self.predicates, self.sites = path, predicates, sites
        self.source = path.read_bytes()
        self.inserts = []

    def run(self):
        self.visit(PARSER.parse(self.source).root_node, 0)
        self.inserts.sort(key=lambda one: one[:3])
        out, last = [], 0
        for at, _, _, text in self.inserts:
            out += [self.source[last:at], text.encode()]
            last = at
        self.path.write_bytes(b"".join(out) + self.source[last:])

    def site(self, node):
        self.sites.append({"file": self.path.name, "line": node.start_point[0] + 1, "size": len(node.text)})
        return len(self.sites) - 1

    def wrap(self, node, before, after, depth):
        self.inserts.append((node.start_byte, 1, depth, before))
        self.inserts.append((node.end_byte, 0, -depth, after))

    def is_candidate(self, text):
        names = re.findall(r"\b([a-z_]\w+)\b(?=\(|\)|$)", text)
        calls = any(name in self.predicates for name in names)
        return (calls or len(text) >= MIN_OPERAND_CHARS) and not GUARD.search(text)

    def visit(self, node, depth):
        before = node.prev_sibling
        if node.type in ("mod_item", "function_item") and before is not None and b"test" in before.text[:14]:
            return
        if node.type in ("macro_invocation", "const_item", "static_item", "attribute_item", "type_item"):
            return
        handler = getattr(self, "visit_" + node.type, None)
        if handler:
            handler(node, depth)
        for child in node.children:
            self.visit(child, depth + 1)

    def visit_function_item(self, node, depth):
        returned, body = node.child_by_field_name("return_type"), node.child_by_field_name("body")
        kind = text_of(returned) if returned else ""
        if body is None or not (kind == "bool" or kind.startswith("Option<")):
            return
        off = "false" if kind == "bool" else "None"
        guard = f" if crate::ablation::entry({self.site(node)}) {{ return {off}; }} "
        self.inserts.append((body.start_byte + 1, 1, depth - 1000, guard))

    def visit_binary_expression(self, node, depth):
        switch = OPERANDS.get(text_of(node.child_by_field_name("operator")))
        for side in ("left", "right") if switch else ():
            operand = node.child_by_field_name(side)
            nested = operand.type == "binary_expression" and operand.child_by_field_name("operator").text in (b"&&", b"||")
            if not nested and not has_let(operand) and self.is_candidate(text_of(operand)):
                self.wrap(operand, f"crate::ablation::{switch}({self.site(operand)}, ", ")", depth)

    def visit_if_expression(self, node, depth):
        condition = node.child_by_field_name("condition")
        if len(node.text) < MIN_BRANCH_CHARS or GUARD.search(text_of(condition)):
            return
        if has_let(condition):
            self.inserts.append((condition.end_byte, 0, 0.5 - depth, f" && crate::ablation::branch({self.site(node)})"))
        else:
            self.wrap(condition, f"crate::ablation::or({self.site(node)}, ", ")", depth)

    def visit_call_expression(self, node, depth):
        function = node.child_by_field_name("function")
        if function.type != "field_expression":
            return
        name = text_of(function.child_by_field_name("field"))
        given = [one for one in node.child_by_field_name("arguments").named_children if "comment" not in one.type]
        if len(given) != 1:
            return
        argument = given[0]
        if name in CALLS and argument.type == "closure_expression" and self.is_candidate(text_of(argument)):
            body = argument.child_by_field_name("body")
            self.wrap(body, f"crate::ablation::{CALLS[name]}({self.site(node)}, ", ")", depth)
        elif name == "or_else" and argument.type == "closure_expression":
            self.wrap(argument.child_by_field_name("body"), f"crate::ablation::option({self.site(node)}, || ", ")", depth)
        elif name == "chain":
            self.wrap(argument, f"crate::ablation::chain({self.site(node)}, ", ")", depth)


def product_files(rules):
    for path in sorted(rules.rglob("*.rs")):
        if path.name not in LEFT_OUT and "tests" not in path.name:
            yield path


def prepare(work, transcripts, truth):
    """Copies the libraries and instruments the rules."""
    shutil.copytree(REPO, work, ignore=shutil.ignore_patterns("target", ".git", "docs", "migrations"))
    crate = work / "crates/extract"
    rules = crate / "src/rules"
    predicates = set()
    for path in product_files(rules):
        if path.name != "label_matches.rs":
            predicates.update(re.findall(r"\bfn (\w+)", path.read_text()))
    sites = []
    for path in product_files(rules):
        Instrumenter(path, predicates, sites).run()
    (work / "sites.json").write_text(json.dumps(sites))
    here = pathlib.Path(__file__).parent
    shutil.copy(here / "ablation_switches.rs", crate / "src/ablation.rs")
    shutil.copy(here / "ablation_driver.rs", rules / "ablation_driver.rs")
    (crate / "src/lib.rs").write_text("#[allow(warnings)]\nmod ablation;\npub mod rules;\n")
    parent = crate / "src/rules.rs"
    parent.write_text(parent.read_text() + "\n#[cfg(test)]\nmod ablation_driver;\n")
    manifest = (crate / "Cargo.toml").read_text()
    unused = "docmill-llm|async-trait|futures|jsonschema|parking_lot|sha2|thiserror|tokio|tracing"
    manifest = re.sub(rf"(?m)^({unused})\b.*\n", "", manifest)
    (crate / "Cargo.toml").write_text(manifest.replace("[lints]\nworkspace = true\n", ""))
    return {"ABLATION_WORK": str(work), "ABLATION_TRANSCRIPTS": str(transcripts), "ABLATION_TRUTH": str(truth)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("work", type=pathlib.Path)
    arguments.add_argument("transcripts", type=pathlib.Path)
    arguments.add_argument("truth", type=pathlib.Path)
    arguments.add_argument("--seconds", type=int, default=3600, help="no further pass begins after these")
    given = arguments.parse_args()
    settings = prepare(given.work.resolve(), given.transcripts.resolve(), given.truth.resolve())
    command = ["cargo", "test", "--lib", "-p", "docmill-extract", "--config", "scripts/optimised.toml", "--", "--nocapture",
               "--exact", "rules::ablation_driver::ablate"]
    environment = {**os.environ, **settings, "ABLATION_SECONDS": str(given.seconds)}
    subprocess.run(command, cwd=given.work, env=environment, check=True)
    print((given.work / "report.txt").read_text())


if __name__ == "__main__":
    main()
