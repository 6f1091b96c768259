#!/usr/bin/env python3
"""Takes the attached files out of a PDF, so that only its pages are left to be read.

    strip_xml.py IN.pdf OUT.pdf      one file
    strip_xml.py FOLDER OUT          every PDF of a folder; a folder `truth` in it is copied

Needs pikepdf (`pip install pikepdf`). Goes through every object, not the tree of names alone: some
writers attach by reference only. The pages stay as they are.
"""

import pathlib
import shutil
import sys

import pikepdf

SPECIFICATION = ("/EF", "/RF")


def strip(source, target):
    """Returns how many file specifications lost their file."""
    with pikepdf.open(source) as pdf:
        found = 0
        for thing in pdf.objects:
            if not isinstance(thing, (pikepdf.Dictionary, pikepdf.Stream)):
                continue
            found += emptied(thing)
        names = pdf.Root.get("/Names")
        if names is not None and "/EmbeddedFiles" in names:
            del names["/EmbeddedFiles"]
        pdf.save(target, deterministic_id=True)
    return found


def emptied(thing, depth=0):
    """Takes files off `thing` and what lies directly in it; what it refers to has its own turn."""
    found = 0
    if isinstance(thing, (pikepdf.Dictionary, pikepdf.Stream)):
        if "/EF" in thing:
            found += 1
        for key in (*SPECIFICATION, "/AF"):
            if key in thing:
                del thing[key]
        parts = [value for _, value in thing.items()]
    else:
        parts = list(thing)
    for part in parts:
        is_own = isinstance(part, (pikepdf.Dictionary, pikepdf.Array)) and not part.is_indirect
        if is_own and depth < 20:
            found += emptied(part, depth + 1)
    return found


def main(source, target):
    if source.is_file():
        strip(source, target)
        return
    target.mkdir(parents=True, exist_ok=True)
    if (source / "truth").is_dir():
        shutil.copytree(source / "truth", target / "truth", dirs_exist_ok=True)
    for pdf in sorted(source.glob("*.pdf")):
        print(f"{pdf.name}: {strip(pdf, target / pdf.name)}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
