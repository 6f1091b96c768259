"""Cost of text beyond its length: time and memory of `docmill process` on one line of dates, for
four times as many each time. Linear work takes about four times as long; what compares each with each
takes sixteen. Made by hand: wants an idle machine and an optimised build.

    text_cost.py PROGRAM

Exit code 1 if a step takes more than eight times the one before, once both take over a second."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zlib


def pdf(line):
    """A page with one line of text, as wide as it takes."""
    content = zlib.compress(b"BT /F1 1 Tf 1 Tz 1 0 0 1 1 5 Tm (" + line + b") Tj ET", 9)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[5 0 R]>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Courier>>",
        b"<</Filter/FlateDecode/Length %d>>\nstream\n" % len(content) + content + b"\nendstream",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 14000 20]/Contents 4 0 R"
        b"/Resources<</Font<</F1 3 0 R>>>>>>",
    ]
    file, offsets = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(file))
        file += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return file + b"xref\n0 6\n0000000000 65535 f \n" + table + (
        b"trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(file)
    )


def dates(count):
    days = (f"{1 + n % 28:02d}.{1 + n // 28 % 12:02d}.{1990 + n // 336 % 40}" for n in range(count))
    return " ".join(days).encode()


def main(program):
    before, failed = None, False
    settings = {"DOCMILL__LIMITS__PAGE_WORDS": "25000"}
    with tempfile.TemporaryDirectory() as folder:
        for count in (1_500, 6_000, 24_000, 96_000):
            path = os.path.join(folder, f"dates_{count}.pdf")
            with open(path, "wb") as file:
                file.write(pdf(dates(count)))
            start = time.monotonic()
            ran = subprocess.run([program, "process", path, "--json"], capture_output=True,
                                 env=os.environ | settings, text=True)
            took = time.monotonic() - start
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
            try:
                reason = json.loads(ran.stdout).get("reason")
            except ValueError:
                reason = "-"
            ratio = took / before if before else 1.0
            print(f"{count:>7} dates {took:8.2f} s {ratio:6.1f} x {peak:6} MiB at most so far  {reason}")
            failed |= before is not None and before > 1.0 and ratio > 8.0
            before = took
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
