"""Kills workers of an olmOCR workspace at random and looks whether every document ends exactly once.

    workspace_kills.py DOCMILL [--endpoint URL] [--documents N] [--kills N] [--workers N]

DOCMILL is the program. Without --endpoint the workspace is a folder, else below a bucket of that
server (a moto server will do). Groups have three documents. Prints one line of figures; exit code 1
if a document is missing in the results or stands in them twice.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import xml.etree.ElementTree

import killing

RESULTS = "results/"
# The stand-in gives objects to nobody without a name, and asks for no more than that.
SOMEBODY = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=0"
}


class Workspace:
    def __init__(self, told, folder):
        self.program, self.endpoint = told.docmill, told.endpoint
        self.environment = killing.environment()
        self.place = os.path.join(folder, "workspace")
        if told.endpoint:
            self.place = "s3://workspaces/killed"
            self.environment |= {
                "DOCMILL__STORE__ENDPOINT": told.endpoint,
                "DOCMILL__STORE__PATH_STYLE": "true",
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
                "AWS_REGION": "us-east-1",
            }
            killing.make_bucket(told.endpoint, "workspaces")

    def ask(self, *words):
        command = [self.program, "workspace", words[0], self.place, *words[1:], "--json"]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def work(self):
        # Documents of a dead worker are free again after six seconds, and no death makes one bad.
        words = ["--workers", "2", "--timeout", "6s", "--tries", "100"]
        if self.endpoint:
            words.append("--local-files")
        return subprocess.Popen(
            [self.program, "workspace", "work", self.place, *words],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def results(self):
        """The text of every result."""
        if not self.endpoint:
            folder = os.path.join(self.place, RESULTS)
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield file.read()
            return
        listing = f"{self.endpoint}/workspaces?list-type=2&prefix=killed/{RESULTS}"
        with self.open(listing) as answer:
            tree = xml.etree.ElementTree.parse(answer)
        for key in tree.iter("{http://s3.amazonaws.com/doc/2006-03-01/}Key"):
            address = f"{self.endpoint}/workspaces/{urllib.parse.quote(key.text)}"
            with self.open(address) as answer:
                yield answer.read().decode()

    def open(self, address):
        return urllib.request.urlopen(urllib.request.Request(address, headers=SOMEBODY))


def main():
    told = killing.arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        papers = os.path.join(folder, "papers")
        killing.documents(papers, told.documents)
        workspace = Workspace(told, folder)
        workspace.ask("populate", papers, "--items-per-group", "3")
        return run(workspace, told)


def run(workspace, told):
    def is_over():
        standing = workspace.ask("stats")
        return standing["groups_done"] == standing["groups"]

    kills, seconds = killing.kill_at_random(told, workspace.work, is_over)
    lines = [line for text in workspace.results() for line in text.splitlines()]
    named = [json.loads(line)["metadata"]["Source-File"] for line in lines]
    standing = workspace.ask("stats")
    print(
        f"workspace {'on S3' if told.endpoint else 'in a folder'}: {told.documents} documents, "
        f"{kills} kills of {told.workers} workers: {len(named)} lines of {len(set(named))} "
        f"documents, {standing['groups_done']} of {standing['groups']} groups done, "
        f"{len(standing['unread'])} not read, {seconds:.0f} s"
    )
    whole = len(named) == len(set(named)) == told.documents and not standing["unread"]
    return 0 if whole and standing["groups_done"] == standing["groups"] else 1


if __name__ == "__main__":
    sys.exit(main())
