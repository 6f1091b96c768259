#!/usr/bin/env python3
"""A page process that was taken over, for DOCMILL__CPU__PROGRAM. What it does stands in the file
`mode` beside it, since its environment is empty: `pages` claims more pages than there can be,
`words` answers with a head of 60 MB, `orphan` leaves a child that keeps the pipe open. Speaks the
frames of crates/documents/src/sandbox/wire/frame.rs."""

import json
import os
import struct
import sys
import time

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mode")) as file:
    MODE = file.read().strip()
REQUESTS, ANSWERS = sys.stdin.buffer, sys.stdout.buffer


def receive():
    header = REQUESTS.read(12)
    if len(header) < 12:
        sys.exit(0)
    length, body = struct.unpack("<IQ", header)
    head = json.loads(REQUESTS.read(length))
    REQUESTS.read(body)
    return head


def send(head):
    encoded = json.dumps(head, separators=(",", ":")).encode()
    ANSWERS.write(struct.pack("<IQ", len(encoded), 0) + encoded)
    ANSWERS.flush()


def answer(asked, what):
    send({"id": asked["id"], "answer": what})


receive()
send({"confinement": {"files": True, "calls": True}})
while True:
    asked = receive()
    request = asked["request"]
    kind = next(iter(request)) if isinstance(request, dict) else request
    if kind == "Close":
        continue
    if kind == "Open":
        if MODE == "orphan" and os.fork() == 0:
            os.setsid()
            time.sleep(600)
            sys.exit(0)
        answer(asked, {"Opened": {"pages": 4294967295 if MODE == "pages" else 1}})
    elif kind == "Look":
        answer(asked, {"Looked": {"einvoices": [], "printed": []}})
    elif kind == "Fields":
        answer(asked, {"Fields": {"of_text": False}})
    elif MODE == "orphan":
        time.sleep(600)
    else:
        page = {
            "number": request[kind]["index"] + 1,
            "source": "native",
            "width": 1,
            "height": 1,
            "quality": 1,
            "languages": [""] * 20_000_000,
            "lines": [],
        }
        answer(asked, {"Read": {"page": page, "image": None}})
