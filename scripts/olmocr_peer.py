"""docmill and olmOCR on one workspace, in a folder and on S3 (moto). Run by scripts/olmocr_peer.sh:

    olmocr_peer.py DOCMILL DOCUMENT NEWER_PYTHON OLDER_PYTHON MOTO_SERVER
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

DOCMILL, DOCUMENT, NEWER, OLDER, MOTO = sys.argv[1:]
SIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "olmocr_peer_side.py")
failures = []


def check(what, found, expected):
    print(f"{'ok  ' if found == expected else 'FAIL'} {what}: {found}", flush=True)
    if found != expected:
        failures.append(what)


def theirs(python, workspace, *arguments, stdin=""):
    done = subprocess.run(
        [python, SIDE, workspace, *arguments], input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"olmOCR's side failed at {arguments[:1]}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def ours(*arguments):
    done = subprocess.run(
        [DOCMILL, "workspace", *arguments, "--json"], capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"docmill workspace {arguments[:1]} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def work(space, *words):
    """Arguments of our worker. The names in the index are files of this machine, which an index
    in a bucket may not name unless the one who starts the worker says so."""
    trusts = ["--local-files"] if space.startswith("s3://") else []
    return ["work", space, *trusts, *words]


class Folder:
    name = "folder"

    def __init__(self, root):
        self.root = root

    def fresh(self, name):
        return os.path.join(self.root, name)


class Bucket:
    name = "S3"

    def fresh(self, name):
        return f"s3://papers/{name}"


def papers(root, count):
    folder = os.path.join(root, f"papers{count}")
    os.makedirs(folder, exist_ok=True)
    names = [os.path.join(folder, f'p{number}, "odd" é.pdf') for number in range(count)]
    for name in names:
        shutil.copy(DOCUMENT, name)
    return names


def hashes():
    """The vectors of our unit tests."""
    for paths, expected in [
        (["a.pdf"], "0e6c2a272c5caa03847715d5d91e5d99fb877a81"),
        (["é.pdf"], "27829118cdbb66fcbfb271cff51b44567cded9e1"),
        ([], "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        (["z", "😀", "\ufffd"], "6203eb0bc5d1c22f043fae5233e0a05803c5170a"),
        (["b,c.pdf", 'd"q.pdf'], "40fc51e0264a566a1a9274d4c92d4861fcedcbf1"),
        (["a.pdf", "b.pdf"], "aa560a3d19fcb1444ca0db64b4c6b8174f085422"),
        (["a.pdfb.pdf"], "aa560a3d19fcb1444ca0db64b4c6b8174f085422"),
    ]:
        for python, family in [(NEWER, "0.4.27"), (OLDER, "0.1.76")]:
            check(f"{family} names {paths} as we do", theirs(python, "-", "hash", *paths), expected)


def names_of_groups(root):
    """The hashes of real groups: their index and ours over the same paths."""
    names = papers(root, 9)
    a, b = os.path.join(root, "names-theirs"), os.path.join(root, "names-ours")
    theirs(NEWER, a, "populate", "4", stdin="\n".join(names))
    ours("populate", b, *names, "--items-per-group", "4")
    check("their index over ours adds nothing", populate_adds(a, names), 0)
    theirs(NEWER, b, "populate", "4", stdin="\n".join(names))
    check("theirs reads ours and adds nothing", theirs(NEWER, b, "left"), 3)
    theirs(OLDER, b, "populate", "4", stdin="\n".join(names))
    check("the older one reads ours and adds nothing", theirs(OLDER, b, "left"), 3)
    taken = theirs(NEWER, a, "take")
    one = subprocess.run(
        [NEWER, "-c", INDEX, b], capture_output=True, text=True, check=True).stdout
    check("groups have the same names", taken in one, True)


INDEX = """
import sys, zstandard
data = open(sys.argv[1] + '/work_index_list.csv.zstd', 'rb').read()
print(zstandard.ZstdDecompressor().decompress(data).decode())
"""


def populate_adds(workspace, names):
    return ours("populate", workspace, *names, "--items-per-group", "4")["added"]


def both_ways(root, place):
    names = papers(root, 12)
    for python, family in [(NEWER, "0.4.27"), (OLDER, "0.1.76")]:
        space = place.fresh(f"theirs-{family}")
        theirs(python, space, "populate", "5", stdin="\n".join(names))
        tally = ours(*work(space))
        check(f"{place.name}: {family} populates, we read", tally["documents"], 12)
        check(f"{place.name}: {family} finds nothing left", theirs(python, space, "left"), 0)
        space = place.fresh(f"ours-{family}")
        ours("populate", space, *names, "--items-per-group", "5")
        check(f"{place.name}: we populate, {family} finds", theirs(python, space, "left"), 3)
        check(f"{place.name}: {family} drains", theirs(python, space, "drain"), 3)
        check(f"{place.name}: we find all done", ours("stats", space)["groups_done"], 3)
        check(f"{place.name}: and do nothing", ours(*work(space))["groups"], 0)


def locks(root, place):
    names = papers(root, 2)
    for python, family in [(NEWER, "0.4.27"), (OLDER, "0.1.76")]:
        space = place.fresh(f"locks-{family}")
        ours("populate", space, *names, "--items-per-group", "2")
        check(f"{place.name}: {family} takes the group", bool(theirs(python, space, "take")), True)
        tally = ours(*work(space, "--leave-locked"))
        check(f"{place.name}: its lock keeps us away", tally["groups"], 0)
        # A lock that lasts 6 s is stale after 7.
        time.sleep(8)
        tally = ours(*work(space, "--leave-locked", "--timeout", "6s"))
        check(f"{place.name}: a stale lock is taken over by us", tally["documents"], 2)
        space = place.fresh(f"kept-{family}")
        # Enough of them that the worker is killed before it is through.
        ours("populate", space, *papers(root, 60), "--items-per-group", "60")
        worker = killed_in_work(space)
        check(f"{place.name}: our lock is there after a kill", worker, True)
        check(f"{place.name}: it keeps {family} away", theirs(python, space, "take"), None)
        time.sleep(3)
        taken = bool(theirs(python, space, "take", "1"))
        check(f"{place.name}: stale for 1 s, it is taken over by {family}", taken, True)


def killed_in_work(space):
    """A worker of ours, killed by SIGKILL as soon as it says that it has begun a document."""
    process = subprocess.Popen(
        [DOCMILL, "workspace", *work(space, "--verbose")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "document begun" in line:
            process.kill()
            break
    process.wait()
    return ours("stats", space)["groups_in_work"] == 1


def many(root, place, count=300, workers=20):
    names = papers(root, count)
    space = place.fresh("many")
    theirs(NEWER, space, "populate", "1", stdin="\n".join(names))
    began = time.monotonic()
    each = workers // 4
    processes = [
        subprocess.Popen(
            [DOCMILL, "workspace", *work(space, "--workers", str(each), "--verbose", "--json")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ended = [process.communicate() for process in processes]
    executions = sum(len(re.findall("document begun", log)) for _, log in ended)
    read = sum(json.loads(out)["documents"] for out, _ in ended)
    took = time.monotonic() - began
    check(f"{place.name}: {count} groups, {workers} workers in 4 processes: executions",
          executions, count)
    check(f"{place.name}: documents read by us", read, count)
    check(f"{place.name}: olmOCR finds left", theirs(NEWER, space, "left"), 0)
    print(f"     {took:.0f} s")


def moto():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([MOTO, "-H", "127.0.0.1", "-p", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return server, f"http://127.0.0.1:{port}"
        time.sleep(0.1)
    server.kill()
    raise SystemExit("moto does not start")


def main():
    root = tempfile.mkdtemp(prefix="docmill-olmocr-")
    for name in list(os.environ):
        if name.startswith("DOCMILL"):
            del os.environ[name]
    server, endpoint = moto()
    os.environ.update(
        PEER_ENDPOINT=endpoint, DOCMILL__STORE__ENDPOINT=endpoint, AWS_REGION="us-east-1",
        AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_EC2_METADATA_DISABLED="true")
    make = "import boto3, os; boto3.client('s3', endpoint_url=os.environ['PEER_ENDPOINT'], " \
           "region_name='us-east-1').create_bucket(Bucket='papers')"
    try:
        subprocess.run([NEWER, "-c", make], check=True)
        hashes()
        names_of_groups(root)
        for place in [Folder(root), Bucket()]:
            both_ways(root, place)
            locks(root, place)
            many(root, place)
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(root, ignore_errors=True)
    print(f"{len(failures)} failures {failures}")
    raise SystemExit(bool(failures))


main()
