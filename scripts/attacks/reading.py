"""Attacks by documents and by a page process that was taken over.

Each attack returns what it saw and raises `GotThrough` if that is not safe."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import files
from world import CONTAINER, DOCMILL, Watched, World, environment

HERE = pathlib.Path(__file__).parent
LIAR = pathlib.Path(os.environ.get("LIAR", "target/debug/examples/lying_page_process"))


class GotThrough(Exception):
    """The unsafe behaviour was seen."""


def demand(holds, what):
    if not holds:
        raise GotThrough(what)


def process(content, seconds, name="document.pdf", limit=CONTAINER, command="process", **settings):
    """`docmill process` on these bytes, watched: exit code, seconds, the run."""
    with tempfile.TemporaryDirectory(prefix="docmill-attack.") as folder:
        path = pathlib.Path(folder) / name
        path.write_bytes(content)
        run = Watched([DOCMILL, command, str(path), "--json"], environment(**settings), limit)
        code, took = run.wait(seconds)
        run.close()
        return code, took, run


def text_bomb():
    """74 KB of PDF take the worker no more memory than a document may have."""
    code, took, run = process(files.text_bomb(20), 300)
    seen = f"exit {code} after {took:.0f} s, worker {run.peak} MiB, page process {run.children_peak} MiB"
    demand(code is not None, "no end: " + seen)
    demand(run.peak < 400, seen)
    code, took, run = process(files.text_bomb(500), 300)
    seen += f"; 500 pages: exit {code} after {took:.0f} s, worker {run.peak} MiB"
    demand(code is not None and run.peak < 400, seen)
    return seen


def raw_deflate():
    """A stream without a zlib header is counted like any other; two of them do not kill the container."""
    code, took, run = process(files.raw_deflate(512), 120, WORKER__CPU_THREADS="1")
    seen = f"512 MiB: exit {code} after {took:.0f} s, page process {run.children_peak} MiB"
    demand(code == 1 and "too_large" in run.text() and run.children_peak < 500, seen)
    world = World(WORKER__CPU_THREADS="2")
    try:
        worker = world.start_worker()
        bomb = files.raw_deflate(8192)
        bombs = [world.hand_in(bomb), world.hand_in(bomb)]
        good = [world.hand_in(files.invoice(f"G-{at}")) for at in range(5)]
        open_good, took = world.wait_for_end(good, 120)
        open_bombs, _ = world.wait_for_end(bombs, 300)
        kills, alive = worker.group.kills(), worker.process.poll() is None
        ends = [world.status(bomb) for bomb in bombs]
        seen += f"; two of 8 GiB: {ends}, kernel killed {kills}, five good documents in {took:.0f} s"
        demand(alive and kills == 0 and not open_good and not open_bombs, seen)
        demand(all(end == "failed|too_large" for end in ends), seen)
    finally:
        world.close()
    return seen


def dates_in_a_line():
    """Eight times the dates on one page cost about eight times the time, and `/livez` answers meanwhile."""
    _, short, first = process(files.dates(1_000), 300)
    code, long, run = process(files.dates(8_000), 600)
    for one in (first, run):
        if any(end in one.text() for end in ('"no_text"', '"too_large"')):
            raise RuntimeError("the attack did not arrive: its dates were not read as text")
    seen = f"1,000: {short:.1f} s; 8,000: exit {code}, {long:.1f} s, worker {run.peak} MiB"
    demand(code is not None and long < 16 * max(short, 0.5), seen)
    world = World(WORKER__CPU_THREADS="2")
    try:
        world.start_worker()
        bad = [world.hand_in(files.dates(8_000)) for _ in range(2)]
        asked, unanswered = 0, 0
        while asked < 60:
            asked += 1
            unanswered += world.get("/livez") != 200
            if world.wait_for_end(bad, 1)[0] == 0:
                break
        seen += f"; /livez: {unanswered} of {asked} unanswered in 5 s"
        demand(unanswered == 0, seen)
    finally:
        world.close()
    return seen


def wide_xml():
    """1.9 million elements are no work of the worker's own process."""
    code, took, run = process(files.wide_xml(), 120, "wide.xml")
    seen = f"exit {code} after {took:.0f} s, worker {run.peak} MiB, page process {run.children_peak} MiB"
    demand(code is not None and run.peak < 150, seen)
    return seen


def with_fake_process(mode, seconds, limit, **settings):
    """As `process`, and the requests that reached the lying page process."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="docmill-attack."))
    program = folder / "lying_page_process"
    shutil.copy(LIAR, program)
    program.chmod(0o755)
    (folder / "mode").write_text(mode)
    try:
        run = process(files.invoice("F-1"), seconds, limit=limit, CPU__PROGRAM=str(program), **settings)
        asked = folder / "asked"
        return *run, asked.read_text().split() if asked.exists() else []
    finally:
        shutil.rmtree(folder)


def lying_page_process():
    """Numbers and lengths of an answer are not believed."""
    seen = []
    for mode in ("pages", "words"):
        code, took, run, asked = with_fake_process(mode, 60, 2 << 30)
        seen.append(f"{mode}: exit {code} after {took:.0f} s, worker {run.peak} MiB, killed {run.kills}, asked {asked}")
        # Its lie about pages answers the first request, the one about words a later one.
        arrived = "Open" in asked and (mode == "pages" or len(set(asked) - {"Open", "Fields", "Close"}) > 0)
        if not arrived:
            raise RuntimeError("the attack did not arrive: " + "; ".join(seen))
        demand(code == 1 and run.peak < 300, "; ".join(seen))
    return "; ".join(seen)


def orphan():
    """A page process whose child keeps its pipe open is over time all the same."""
    code, took, run, asked = with_fake_process("orphan", 60, CONTAINER, LIMITS__PAGE_TIME="3s")
    seen = f"exit {code} after {took:.0f} s, {run.left} processes left, asked {asked}"
    if not set(asked) - {"Open", "Fields", "Close"}:
        raise RuntimeError("the attack did not arrive: " + seen)
    demand(code is not None and took < 30, seen)
    return seen


def confinement():
    """Attempts of a program inside a page process against its worker are refused."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="docmill-attack."))
    program = folder / "tesseract"
    compiled = subprocess.run(["cc", "-O1", "-o", str(program), str(HERE / "confined.c")], capture_output=True, text=True)
    if compiled.returncode:
        raise RuntimeError(compiled.stderr)
    scan = pathlib.Path("samples/scan_skewed.pdf").read_bytes()
    try:
        # The other reader would read the page without this program.
        engine = {"OCR__ENGINE": "tesseract", "OCR__TESSERACT": str(program)}
        code, took, run = process(scan, 120, command="transcribe", **engine)
        words = run.text()
    finally:
        shutil.rmtree(folder)
    tried = sorted(set(re.findall(r"TRY-[a-z_]+-(?:OK|no)", words)))
    through = [one for one in tried if one.endswith("-OK")]
    seen = f"exit {code} after {took:.0f} s; {len(tried)} tries, through: {through or 'none'}"
    demand(tried, "the program inside said nothing: " + words[-500:])
    demand(not through, seen)
    return seen


# How a glyph may draw nothing that a person sees.
UNSEEN = {
    "empty": b"",
    "a speck": b"0 0 1 1 re f",
    "white": b"1 g 0 0 500 700 re f",
    "far away": b"1 0 0 1 0 90000 cm 0 0 500 700 re f",
}


def hidden_text():
    """Text that a person cannot see is not read as printed, and a font that lies is noticed."""
    _, _, run = process(files.hidden_text(), 120, command="transcribe")
    found = [word for word in ("HIDDENWHITE", "HIDDENPOLY", "HIDDENTINY") if word in run.text()]
    _, _, honest = process(files.invoice("LIE-7"), 120)
    _, _, lie = process(files.lying_font(), 120)
    answer, control = json.loads(lie.text()), json.loads(honest.text())
    total = (answer.get("data") or {}).get("total")
    flagged = bool(answer["review_reasons"]) or answer["status"] != "completed"
    seen = f"hidden words read: {found or 'none'}; lying font: total {total}, {answer['status']}, {answer['review_reasons']}"
    demand(control["status"] == "completed" and not control["review_reasons"], f"the honest one: {control['review_reasons']}")
    demand(not found, seen)
    demand(total == 1100 or flagged, seen)
    for name, drawing in UNSEEN.items():
        _, _, run = process(files.unseen_totals(drawing), 120)
        data = json.loads(run.text()).get("data") or {}
        demand(data.get("total") == 1100, f"{name}: total {data.get('total')}")
        seen += f"; {name}: {data.get('total')}"
    return seen
