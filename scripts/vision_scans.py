"""Reads scans with a "vision model" that really looks, and the machine's own readers as the local reading. Run by
vision_scans.sh.

    vision_scans.py DOCMILL DIR [NAME…]

Behind an OpenAI-compatible server of this machine another engine reads the picture that it is sent, and its
lines are the model's reply: RapidOCR if it is installed, which is its own detector, classifier and recogniser,
else bare Tesseract (READER=tesseract asks for that). Every scan is read twice, by docmill alone and with the
model first. Of each has to hold: no word is in the result that neither of the two printed, and every word with
a digit is one that docmill alone has too, or is marked as unwitnessed. And over all scans the recall of words is
no lower than docmill's alone. Exit code 1 if one of that is false. No word of a scan is printed.
"""

import base64
import collections
import http.server
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

from reading_peers import mean, precision, recall, table_of

MAX_WAIT_SECONDS = 3600
# A page of which a third of the time is gone is read no further: a busy machine would read less.
PAGE_TIME = "3000s"


def by_tesseract(picture):
    """Lines, from the top."""
    done = subprocess.run(["tesseract", "-", "-", "--psm", "3", "-l", "eng"], input=picture, capture_output=True,
                          env=dict(os.environ, OMP_THREAD_LIMIT="1"), check=True)
    return [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]


def by_rapidocr():
    """A function that reads as RapidOCR does; its pieces on one level are one line."""
    import logging

    import numpy
    from PIL import Image
    from rapidocr import RapidOCR

    logging.disable(logging.WARNING)
    engine = RapidOCR(params={"EngineConfig.onnxruntime.intra_op_num_threads": 1})

    def read(picture):
        found = engine(numpy.asarray(Image.open(io.BytesIO(picture)).convert("RGB")))
        if found.boxes is None:
            return []
        pieces = []
        for box, text in zip(found.boxes, found.txts):
            tops = sorted(float(y) for _, y in box)
            pieces.append(((tops[0] + tops[-1]) / 2, tops[-1] - tops[0], min(float(x) for x, _ in box), text))
        lines = []
        for middle, height, left, text in sorted(pieces):
            if lines and middle - lines[-1][0] < height / 2:
                lines[-1][1].append((left, text))
            else:
                lines.append((middle, [(left, text)]))
        return [" ".join(text for _, text in sorted(line)) for _, line in lines]

    return read


def reader():
    if os.environ.get("READER") != "tesseract":
        try:
            return "RapidOCR", by_rapidocr()
        except ImportError:
            print("RapidOCR is not here: Tesseract reads", file=sys.stderr)
    return "Tesseract", by_tesseract


class Model(http.server.BaseHTTPRequestHandler):
    """An OpenAI-compatible chat that reads the picture of its request."""

    read = None
    said = []
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        pictures = [part["image_url"]["url"] for message in asked["messages"]
                    for part in (message["content"] if isinstance(message["content"], list) else [])
                    if part["type"] == "image_url"]
        assert len(pictures) == 1, "one page at a time"
        lines = Model.read(base64.b64decode(pictures[0].partition(",")[2]))
        Model.said.extend(lines)
        content = json.dumps({"turn": "0", "lines": lines}, ensure_ascii=False)
        reply = {
            "id": "1", "object": "chat.completion", "created": 0, "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
            "usage": {"prompt_tokens": 3000, "completion_tokens": 1 + len(content) // 3, "total_tokens": 3001},
        }
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def transcript(program, path, settings):
    """The transcript, and why readings of the model were refused."""
    named = {f"DOCMILL__{key}": value for key, value in settings.items()}
    done = subprocess.run([program, "transcribe", str(path), "--format", "json"], capture_output=True, text=True,
                          timeout=MAX_WAIT_SECONDS, env={**os.environ, **named})
    if done.returncode != 0:
        return {"pages": []}, []
    return json.loads(done.stdout), re.findall(r"the reading of page \d+ is refused as (\w+)", done.stderr)


def words_of(read):
    return [word for page in read["pages"] for line in page["lines"] for word in line["words"]]


def text_of(read):
    return "\n".join(" ".join(word["text"] for word in line["words"]) for page in read["pages"] for line in page["lines"])


def faults(alone, both, said):
    """How many words are nobody's, and how many digits are unwitnessed and unmarked."""
    own, told = {word["text"] for word in words_of(alone)}, " ".join(said)
    new = unmarked = 0
    for word in words_of(both):
        text = word["text"]
        new += text not in own and text not in told
        has_digit = any(letter.isdigit() for letter in text)
        unmarked += has_digit and text not in own and not word.get("unwitnessed", False)
    return new, unmarked


def main(program, folder, *names):
    name, Model.read = reader()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model = {
        "OCR__PROVIDERS": "vision,tesseract", "OCR__VISION__BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
        "OCR__VISION__MODEL": "seer", "OCR__VISION__TIMEOUT": "600s", "LIMITS__PAGE_TIME": PAGE_TIME,
    }
    scans = [scan for scan in table_of(pathlib.Path(folder)) if not names or scan[0].stem in names]
    if not scans:
        sys.exit("no scan has a truth/NAME.txt")
    rows, refused, wrong = [], collections.Counter(), 0
    marked = added = 0
    for path, _, truth in scans:
        alone, _ = transcript(program, path, {"LIMITS__PAGE_TIME": PAGE_TIME})
        Model.said = []
        both, reasons = transcript(program, path, model)
        refused.update(reasons)
        new, unmarked = faults(alone, both, Model.said)
        wrong += new + unmarked
        own = {word["text"] for word in words_of(alone)}
        marked += sum(word.get("unwitnessed", False) for word in words_of(both))
        added += sum(word["text"] not in own for word in words_of(both))
        texts = (text_of(alone), "\n".join(Model.said), text_of(both))
        rows.append([measure(truth, text) for text in texts for measure in (recall, precision)])
        kind = path.stem.split("_")[0]
        figures = "  ".join(f"{value:.3f}" for value in rows[-1])
        print(f"{kind:<10}{path.stem:<32}{figures}  {new} new, {unmarked} unmarked digits, {','.join(reasons)}", flush=True)
    means = [mean(row[at] for row in rows) for at in range(6)]
    print(f"\n{len(rows)} scans; recall (precision): docmill alone {means[0]:.3f} ({means[1]:.3f}), {name} alone "
          f"{means[2]:.3f} ({means[3]:.3f}), {name} with docmill as local reader {means[4]:.3f} ({means[5]:.3f})")
    print(f"readings refused: {sum(refused.values())} {dict(refused)}; words that the model brought: {added}, "
          f"marked: {marked}; words of neither and digits without local reading or mark: {wrong}")
    lower = means[4] < means[0]
    print("the recall is lower than alone" if lower else "the recall is no lower than alone")
    return 1 if wrong or lower else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
