"""Drives the batches of every vendor's stand-in with that vendor's own client, and validates every
answer by its types.

    batch_contracts.py MODEL_STANDIN

Run by contracts.sh. docmill's tests hold what docmill sends against the stand-in; this holds the
stand-in against the vendors: what their clients send it takes, what it answers they understand.
"""

import json
import os
import subprocess
import sys
import tempfile

import anthropic
import openai
from anthropic.types.messages import (
    DeletedMessageBatch,
    MessageBatch,
    MessageBatchIndividualResponse,
)
from contracts import answer_of
from openai.types import Batch, FileDeleted, FileObject
from openai.types.chat import ChatCompletion

ASKED = [{"role": "user", "content": "What is it?"}]


class StandIn:
    """A running stand-in that speaks a vendor's protocol."""

    def __init__(self, program, vendor):
        script = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
        json.dump({"vendor": vendor, "then": {"answer": "ok", "content": {}}}, script)
        script.close()
        self.script = script.name
        self.process = subprocess.Popen(
            [program, "--listen", "127.0.0.1:0", "--script", self.script],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.url = self.process.stderr.readline().removeprefix("listening on ").strip()

    def __enter__(self):
        return self.url

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.unlink(self.script)


def check(kind, answered):
    answer_of(kind, json.loads(answered.model_dump_json(exclude_unset=True)))
    return answered


def openai_batches(program):
    with StandIn(program, "openai") as url:
        client = openai.OpenAI(base_url=url, api_key="k", max_retries=0)
        line = {
            "custom_id": "docmill-a-0",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "m", "messages": ASKED, "max_completion_tokens": 9},
        }
        file = client.files.create(
            file=("docmill-a.jsonl", json.dumps(line).encode()),
            purpose="batch",
            expires_after={"anchor": "created_at", "seconds": 345600},
        )
        check(FileObject, file)
        batch = client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"docmill_batch": "docmill-a"},
        )
        check(Batch, batch)
        listed = [check(Batch, one) for one in client.batches.list(limit=100)]
        assert [one.metadata["docmill_batch"] for one in listed] == ["docmill-a"], listed
        ended = check(Batch, client.batches.retrieve(batch.id))
        assert ended.status == "completed", ended
        answers = client.files.content(ended.output_file_id).text.splitlines()
        [answer] = [json.loads(one) for one in answers]
        assert answer["custom_id"] == "docmill-a-0", answer
        answer_of(ChatCompletion, answer["response"]["body"])
        check(Batch, client.batches.cancel(batch.id))
        check(FileDeleted, client.files.delete(file.id))


def anthropic_batches(program):
    with StandIn(program, "anthropic") as url:
        client = anthropic.Anthropic(
            base_url=url.removesuffix("/v1"), api_key="k", max_retries=0
        )
        params = {"model": "m", "max_tokens": 9, "messages": ASKED}
        batches = client.messages.batches
        batch = batches.create(requests=[{"custom_id": "docmill-a-0", "params": params}])
        check(MessageBatch, batch)
        assert [check(MessageBatch, one).id for one in batches.list(limit=100)] == [batch.id]
        ended = check(MessageBatch, batches.retrieve(batch.id))
        assert ended.processing_status == "ended" and ended.results_url, ended
        path = f"/v1/messages/batches/{batch.id}/results"
        lines = client.get(path, cast_to=str).splitlines()
        answer_of(MessageBatchIndividualResponse, json.loads(lines[0]))
        check(MessageBatch, batches.cancel(batch.id))
        check(DeletedMessageBatch, batches.delete(batch.id))


def main(program):
    openai_batches(program)
    anthropic_batches(program)
    print("batches: the vendors' own clients understand the stand-ins of both")


if __name__ == "__main__":
    main(*sys.argv[1:])
