"""Shared parts of the scripts that kill workers at random: documents, an environment, the killing."""

import argparse
import os
import random
import time
import urllib.request


def pdf(text):
    """A PDF of one line, small enough to be read in milliseconds."""
    return drawn_pdf(f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode())


def drawn_pdf(content):
    """A PDF of one page with this content stream."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return out + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        start,
    )


def arguments(doc):
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("docmill")
    parser.add_argument("--endpoint")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--patience", type=int, default=900, help="seconds")
    return parser.parse_args()


def documents(folder, count):
    os.mkdir(folder)
    for number in range(count):
        with open(os.path.join(folder, f"{number}.pdf"), "wb") as file:
            file.write(pdf(f"Document {number}"))


def environment():
    """This one without anything that tells docmill where to work."""
    ours = ("DOCMILL", "BLOBFORGE", "AWS")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def make_bucket(endpoint, name):
    """Makes the bucket; there may be one."""
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT")).close()


def kill_at_random(told, start, is_over):
    """Keeps as many workers running as told and kills them in turns, until the end is reached or
    patience is lost. Returns how many were killed, and after how many seconds it ended."""
    began, kills = time.monotonic(), 0
    workers = [start() for _ in range(told.workers)]
    try:
        while time.monotonic() - began < told.patience:
            time.sleep(random.uniform(0.3, 1.5))
            if kills < told.kills:
                place = random.randrange(len(workers))
                workers[place].kill()
                workers[place].wait()
                workers[place] = start()
                kills += 1
            elif is_over():
                break
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()
    return kills, time.monotonic() - began
