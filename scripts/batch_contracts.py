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
import botocore.session
import google.genai
import openai
from anthropic.types.messages import (
    DeletedMessageBatch,
    MessageBatch,
    MessageBatchIndividualResponse,
)
from contracts import BEDROCK, answer_of, shape_of
from google.genai import types as gemini_types
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


def bedrock_batches(program):
    """The jobs by botocore's own client; the bucket, of which the stand-in has no more than jobs need, by
    requests as S3 knows them, signed by botocore."""
    with StandIn(program, "bedrock") as url:
        session = botocore.session.Session()
        session.set_credentials("AKIATEST", "secret")
        session.set_config_variable("region", "us-east-1")
        once = botocore.config.Config(
            retries={"total_max_attempts": 1}, s3={"addressing_style": "path"},
            request_checksum_calculation="when_required",
        )
        client = session.create_client("bedrock", endpoint_url=url, config=once)
        bucket = session.create_client("s3", endpoint_url=f"{url}/s3", config=once)
        asked = {"messages": [{"role": "user", "content": [{"text": "What is it?"}]}],
                 "inferenceConfig": {"maxTokens": 9}}
        shape_of(BEDROCK.operation_model("Converse").input_shape, {"modelId": "m", **asked})
        line = json.dumps({"recordId": "Q0000000000", "modelInput": asked})
        bucket.put_object(Bucket="questions", Key="a/docmill-a.jsonl", Body=line.encode())
        job = {
            "jobName": "docmill-a", "clientRequestToken": "docmill-a",
            "roleArn": "arn:aws:iam::123456789012:role/batches", "modelId": "m",
            "modelInvocationType": "Converse", "timeoutDurationInHours": 24,
            "inputDataConfig": {"s3InputDataConfig": {
                "s3Uri": "s3://questions/a/docmill-a.jsonl", "s3InputFormat": "JSONL"}},
            "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": "s3://questions/a/answers/"}},
        }
        made = client.create_model_invocation_job(**job)["jobArn"]
        assert client.create_model_invocation_job(**job)["jobArn"] == made, "one token, one job"
        listed = client.list_model_invocation_jobs(nameContains="docmill-a", maxResults=100)
        assert [one["jobArn"] for one in listed["invocationJobSummaries"]] == [made], listed
        number = made.rsplit("/", 1)[-1]
        ended = client.get_model_invocation_job(jobIdentifier=number)
        assert ended["status"] == "Completed" and ended["jobName"] == "docmill-a", ended
        shapes = session.get_service_model("bedrock")
        for operation, answer in [("Get", ended), ("List", listed)]:
            name = {"Get": "GetModelInvocationJob", "List": "ListModelInvocationJobs"}[operation]
            answer = {key: value for key, value in answer.items() if key != "ResponseMetadata"}
            shape_of(shapes.operation_model(name).output_shape, answer)
        key = f"a/answers/{number}/docmill-a.jsonl.out"
        bucket.head_object(Bucket="questions", Key=key)
        answers = bucket.get_object(Bucket="questions", Key=key)["Body"].read().splitlines()
        [answer] = [json.loads(one) for one in answers]
        assert answer["recordId"] == "Q0000000000", answer
        shape_of(BEDROCK.operation_model("Converse").output_shape, answer["modelOutput"])
        client.stop_model_invocation_job(jobIdentifier=number)
        bucket.delete_object(Bucket="questions", Key="a/docmill-a.jsonl")


def gemini_batches(program):
    with StandIn(program, "gemini") as url:
        options = gemini_types.HttpOptions(base_url=url.removesuffix("/v1beta"), api_version="v1beta")
        client = google.genai.Client(api_key="k", http_options=options)
        request = {"contents": [{"role": "user", "parts": [{"text": "What is it?"}]}],
                   "generationConfig": {"maxOutputTokens": 9}}
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            json.dump({"key": "docmill-a-0", "request": request}, file)
            file.flush()
            config = gemini_types.UploadFileConfig(
                display_name="docmill-a", mime_type="application/jsonl"
            )
            uploaded = client.files.upload(file=file.name, config=config)
        named = gemini_types.CreateBatchJobConfig(display_name="docmill-a")
        batch = client.batches.create(model="m", src=uploaded.name, config=named)
        listed = list(client.batches.list())
        assert [(one.name, one.display_name) for one in listed] == [(batch.name, "docmill-a")], listed
        ended = client.batches.get(name=batch.name)
        assert ended.state == gemini_types.JobState.JOB_STATE_SUCCEEDED, ended
        answers = client.files.download(file=ended.dest.file_name).decode().splitlines()
        [answer] = [json.loads(one) for one in answers]
        assert answer["key"] == "docmill-a-0", answer
        reply = gemini_types.GenerateContentResponse._from_response(
            response=answer["response"], kwargs={}
        )
        assert reply.text and reply.usage_metadata.total_token_count, reply
        client.batches.cancel(name=batch.name)
        client.files.delete(name=uploaded.name)
        client.batches.delete(name=batch.name)


def main(program):
    openai_batches(program)
    anthropic_batches(program)
    bedrock_batches(program)
    gemini_batches(program)
    print("batches: the vendors' own clients understand the stand-ins of all four")


if __name__ == "__main__":
    main(*sys.argv[1:])
