"""Drives docmill against a real multimodal server whose weights are random. Run by random_vision.sh.

    random_vision.py DOCMILL LLAMA_SERVER FOLDER PICTURE

Nothing is stood in for: the pictures are decoded, cut into tiles and counted by the server, the schema is
enforced by its grammar, the window is its own. It says noise, so of every reading one thing has to hold:
the transcript is, word for word, what this machine reads without it. Exit code 1 if anything else comes
out, or if a case ends for another reason than it was made for.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.request

# By recipe and maximum tokens of the reply: the words by which a reading of a page by a server of this
# window, with this temperature, may be refused. Noise may break any rule; a limit breaks one.
CASES = [
    ("a reply of a schema, cut", 16384, "0.8", "general", 20, {"cut"}),
    ("a whole reply of a schema", 16384, "0.8", "general", 1500, None),
    ("free text, cut", 16384, "0.8", "olmocr", 20, {"cut"}),
    ("free text, of which a greedy model makes a loop", 16384, "0", "olmocr", 600, {"loop"}),
    ("a page that does not fit the window", 1024, "0.8", "general", 400, {"too_long"}),
]
READY = 60


class Server:
    """llama-server with the random weights, on a free port of this machine."""

    def __init__(self, program, folder, window, temperature):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        libraries = pathlib.Path(program).parent.parent
        paths = f"{libraries / 'lib'}:{libraries / 'bin'}"
        self.log = open(folder / "server.log", "ab")
        self.process = subprocess.Popen(
            [program, "-m", folder / "model.gguf", "--mmproj", folder / "mmproj.gguf", "--host", "127.0.0.1",
             "--port", str(self.port), "-c", str(window), "--temp", temperature, "-np", "1", "-t", "1"],
            stdout=self.log, stderr=self.log, env=dict(os.environ, LD_LIBRARY_PATH=paths),
        )
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self):
        for _ in range(READY * 10):
            if self.process.poll() is not None:
                raise SystemExit("the server did not start: see server.log")
            try:
                with urllib.request.urlopen(self.url.removesuffix("/v1") + "/health", timeout=1) as answer:
                    if answer.status == 200:
                        return self
            except OSError:
                time.sleep(0.1)
        raise SystemExit("the server is not ready in time")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()


def docmill(program, arguments, settings):
    named = {f"DOCMILL__{key}": value for key, value in settings.items()}
    done = subprocess.run([program, *arguments], env={**os.environ, **named}, capture_output=True, text=True,
                          timeout=900)
    return done.returncode, done.stdout, done.stderr


def check_reading(program, server, picture, alone, recipe, tokens, reasons):
    """The faults of a reading; empty if there is none."""
    settings = {
        "OCR__ENGINE": "tesseract", "OCR__PROVIDERS": "vision,tesseract", "OCR__VISION__PROVIDER": "openai",
        "OCR__VISION__SERVER": "llama_cpp", "OCR__VISION__BASE_URL": server.url,
        "OCR__VISION__MODEL": "random", "OCR__VISION__RECIPE": recipe,
        "OCR__VISION__MAX_OUTPUT_TOKENS": str(tokens),
    }
    code, text, told = docmill(program, ["transcribe", picture, "--format", "lines"], settings)
    if code != 0:
        return f"exit code {code}: {told[-300:]}"
    refused = re.search(r"the reading of page 1 is refused as (\w+)", told)
    if refused is None:
        return f"the reading was not refused: {told[-300:]}"
    if text != alone:
        return "the transcript is not what is read without the model"
    if reasons is not None and refused[1] not in reasons:
        return f"refused as {refused[1]}, which this case was not made for"
    print(f"    refused as {refused[1]}")
    return ""


def check_server(server, picture):
    """That the server looks at pictures at all, and counts them: the same words with one cost more."""
    import base64

    kind = "jpeg" if picture.endswith("jpg") else "png"
    data = base64.b64encode(pathlib.Path(picture).read_bytes()).decode()
    image = {"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,{data}", "detail": "high"}}
    counts = []
    for parts in ([], [image]):
        content = [{"type": "text", "text": "What is it?"}, *parts]
        body = {"model": "random", "max_tokens": 4, "messages": [{"role": "user", "content": content}]}
        request = urllib.request.Request(f"{server.url}/chat/completions", json.dumps(body).encode(),
                                         {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as answer:
            counts.append(json.load(answer)["usage"]["prompt_tokens"])
    print(f"    {counts[0]} tokens without a picture, {counts[1]} with it")
    return "" if counts[1] > counts[0] + 36 else "a picture counts for nothing"


def check_extraction(program, server, document):
    """A document read by noise: whatever comes of it, nothing of it may pass."""
    settings = {
        "OCR__ENGINE": "tesseract", "LLM__PROVIDER": "openai", "LLM__SERVER": "llama_cpp",
        "LLM__BASE_URL": server.url, "LLM__MODEL": "random", "LLM__TAKES_PICTURES": "true",
        "LLM__MAX_OUTPUT_TOKENS": "200", "KINDS__CLASSIFY": "false",
    }
    _, out, told = docmill(program, ["process", document, "--json"], settings)
    try:
        report = json.loads(out)
    except json.JSONDecodeError:
        # This server holds a reply that was cut against the schema itself, and answers 500 to its own
        # noise: a call that failed, of which nothing is left.
        if "status 500" in told:
            print("    the call failed: status 500")
            return ""
        return f"no report: {told[-300:]}"
    print(f"    {report.get('status')} ({report.get('reason')})")
    return "noise passed as data" if report.get("status") == "completed" else ""


def main(program, server_program, folder, picture):
    folder, wrong = pathlib.Path(folder), 0
    _, alone, _ = docmill(program, ["transcribe", picture, "--format", "lines"], {"OCR__ENGINE": "tesseract"})
    if len(alone.split()) < 20:
        raise SystemExit("the picture has too few words to say anything")

    def note(name, problem):
        print(f"{'wrong' if problem else 'right'}: {name}{': ' if problem else ''}{problem}", flush=True)
        return 1 if problem else 0

    with Server(server_program, folder, 16384, "0.8") as server:
        wrong += note("pictures are looked at and counted", check_server(server, picture))
        wrong += note("a document read by noise", check_extraction(program, server, picture))
    for name, window, temperature, recipe, tokens, reasons in CASES:
        with Server(server_program, folder, window, temperature) as server:
            wrong += note(name, check_reading(program, server, picture, alone, recipe, tokens, reasons))
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
