"""Processes a document with every vendor's stand-in and validates every request and every answer.

    contracts.py DOCMILL MODEL_STANDIN DOCUMENT

Run by contracts.sh. A type that accepts everything would prove nothing, so each request and each
answer is also spoiled in a few ways, and the types have to refuse that.
"""

import copy
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlsplit

import botocore.session
import botocore.validate
import google.auth.credentials
import google.genai
import google.genai.errors
import google.genai.models
from anthropic._models import FinalRequestOptions
from anthropic.lib.vertex._client import _prepare_options as written_for_vertex
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.message_create_params import (
    MessageCreateParamsNonStreaming,
    MessageCreateParamsStreaming,
)
from anthropic.types.shared import ErrorResponse
from google.genai import types as gemini_types
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from pydantic import BaseModel, TypeAdapter, ValidationError


class Broken(Exception):
    """A body violates its contract."""


@functools.cache
def adapter(kind):
    """Kept: what was validated lazily needs it until it is drained."""
    return TypeAdapter(kind)


def drained(value):
    """The validated value as plain data: validation of lists is lazy, and unknown keys are gone."""
    if isinstance(value, Mapping):
        return {key: drained(inner) for key, inner in value.items()}
    if isinstance(value, (str, bytes, int, float, bool, type(None))):
        return value
    return [drained(inner) for inner in value]


def request_of(kind, body):
    try:
        known = drained(adapter(kind).validate_python(body))
    except ValidationError as error:
        raise Broken(str(error)) from error
    if known != body:
        raise Broken(f"keys that the type does not know: {sorted(lost(body, known))}")


def lost(body, known, at=""):
    if isinstance(body, dict) and isinstance(known, dict):
        for key, value in body.items():
            if key not in known:
                yield f"{at}/{key}"
            else:
                yield from lost(value, known[key], f"{at}/{key}")
    elif isinstance(body, list) and isinstance(known, list):
        for number, (one, other) in enumerate(zip(body, known)):
            yield from lost(one, other, f"{at}/{number}")


def extras(model, at=""):
    if isinstance(model, BaseModel):
        yield from (f"{at}/{key}" for key in (model.model_extra or {}))
        for name in type(model).model_fields:
            yield from extras(getattr(model, name), f"{at}/{name}")
    elif isinstance(model, list):
        for number, item in enumerate(model):
            yield from extras(item, f"{at}/{number}")


def answer_of(kind, body):
    try:
        # Strict: a number as text is no number.
        model = adapter(kind).validate_json(json.dumps(body), strict=True)
    except ValidationError as error:
        raise Broken(str(error)) from error
    unknown = list(extras(model))
    if unknown:
        raise Broken(f"keys that the type does not know: {unknown}")


BEDROCK = botocore.session.Session().get_service_model("bedrock-runtime")
CONVERSE = {
    "converse": BEDROCK.operation_model("Converse"),
    "converse-stream": BEDROCK.operation_model("ConverseStream"),
}


def shape_of(shape, body):
    report = botocore.validate.ParamValidator().validate(body, shape)
    if report.has_errors():
        raise Broken(report.generate_report())


def openai(exchange):
    request, answer = exchange["request"], exchange["answer"]
    streamed = request.get("stream")
    request_of(
        CompletionCreateParamsStreaming if streamed else CompletionCreateParamsNonStreaming, request
    )
    if exchange["status"] == 200:
        for event in answer["events"] if streamed else [answer]:
            answer_of(ChatCompletionChunk if streamed else ChatCompletion, event)


def anthropic(exchange):
    request, answer = exchange["request"], exchange["answer"]
    streamed = request.get("stream")
    request_of(MessageCreateParamsStreaming if streamed else MessageCreateParamsNonStreaming, request)
    if exchange["status"] != 200:
        answer_of(ErrorResponse, answer)
        return
    for event in answer["events"] if streamed else [answer]:
        if event["type"] != "ping":
            answer_of(RawMessageStreamEvent if streamed else Message, event)


def bedrock(exchange):
    call = re.fullmatch(r"/model/([^/]+)/(converse|converse-stream)", exchange["path"])
    if not call:
        raise Broken(f"no path of Converse: {exchange['path']}")
    operation = CONVERSE[call[2]]
    shape_of(operation.input_shape, {"modelId": call[1], **exchange["request"]})
    if exchange["status"] != 200:
        return
    if call[2] == "converse":
        shape_of(operation.output_shape, exchange["answer"])
        return
    for event in exchange["answer"]["events"]:
        shape_of(operation.output_shape.members["stream"], event)


def vertex_claude(exchange):
    """Anthropic's own client for Vertex AI writes path and body from a message of the API: ours has to
    be that message and that path."""
    call = re.fullmatch(r".*/publishers/anthropic/models/([^/:]+):\w+", exchange["path"])
    if not call:
        raise Broken(f"no path of a model of Anthropic's: {exchange['path']}")
    message = {key: value for key, value in exchange["request"].items() if key != "anthropic_version"}
    message["model"] = call[1]
    options = FinalRequestOptions.construct(
        method="post", url="/v1/messages", json_data=copy.deepcopy(message)
    )
    written = written_for_vertex(options, project_id=PROJECT, region=LOCATION)
    if f"/v1{written.url}" != exchange["path"]:
        raise Broken(f"its client calls {written.url}, we {exchange['path']}")
    # Its client sets the version alone where there is none, and keeps another.
    ours = {**exchange["request"], "anthropic_version": exchange["request"].get("anthropic_version")}
    if written.json_data != ours:
        raise Broken(f"its client writes {sorted(written.json_data)}, we {sorted(exchange['request'])}")
    anthropic({**exchange, "request": message})


# The project and location of the stand-in for Vertex AI.
PROJECT, LOCATION = "project-1", "europe-west4"
GEMINI = google.genai.Client(api_key="key")._api_client
VERTEX = google.genai.Client(
    vertexai=True,
    project=PROJECT,
    location=LOCATION,
    credentials=google.auth.credentials.AnonymousCredentials(),
    http_options={"api_version": "v1"},
)._api_client


def gemini(exchange):
    google_content(exchange, GEMINI, google.genai.models._GenerateContentParameters_to_mldev)


def vertex_gemini(exchange):
    google_content(exchange, VERTEX, google.genai.models._GenerateContentParameters_to_vertex)


def google_content(exchange, client, write):
    """Its types have names of their own for what travels, so the vendor's own client writes the same
    request from them: ours has to be that, key for key, at the same path."""
    call = re.search(r"/models/([^/:]+):generateContent$", exchange["path"])
    if not call:
        raise Broken(f"no path of generateContent: {exchange['path']}")
    request, answer = exchange["request"], exchange["answer"]
    if "contents" not in request:
        raise Broken("its client makes no call without contents")
    config = dict(request.get("generationConfig") or {})
    if "systemInstruction" in request:
        config["systemInstruction"] = request["systemInstruction"]
    try:
        asked = gemini_types._GenerateContentParameters(
            model=call[1],
            contents=[gemini_types.Content.model_validate(one) for one in request["contents"]],
            config=gemini_types.GenerateContentConfig.model_validate(config),
        )
    except (ValidationError, TypeError, ValueError) as error:
        raise Broken(str(error)) from error
    written = write(client, asked)
    named = written.pop("_url")["model"]
    if drained(written) != request:
        raise Broken(f"its client writes {sorted(written)}, we {sorted(request)}")
    called = urlsplit(client._build_request("post", f"{named}:generateContent", request, None).url).path
    if called != exchange["path"]:
        raise Broken(f"its client calls {called}, we {exchange['path']}")
    if exchange["status"] != 200:
        error = google.genai.errors.APIError(exchange["status"], answer)
        if not (error.message and error.status and error.code == exchange["status"]):
            raise Broken("an error without code, status or message")
        return
    answer_of(gemini_types.GenerateContentResponse, answer)
    for candidate in answer.get("candidates", []):
        if candidate["finishReason"] not in gemini_types.FinishReason.__members__:
            raise Broken(f"no reason to stop: {candidate['finishReason']}")
    blocked = answer.get("promptFeedback", {}).get("blockReason")
    if blocked and blocked not in gemini_types.BlockedReason.__members__:
        raise Broken(f"no reason to block: {blocked}")


def spoiled(vendor, exchange):
    """The exchange with one thing wrong, in several ways."""
    for part in ("request", "answer"):
        if part == "answer" and (exchange["status"] != 200 or "events" in exchange["answer"]):
            continue
        extra = copy.deepcopy(exchange)
        extra[part]["unheard_of"] = 1
        yield f"{part} with an unknown key", extra
        for key in exchange[part]:
            if key in REQUIRED[vendor]:
                less = copy.deepcopy(exchange)
                del less[part][key]
                yield f"{part} without {key}", less
            if key in TYPED:
                other = copy.deepcopy(exchange)
                other[part][key] = {"not": "this"}
                yield f"{part} with another {key}", other


# Required members by contract: OpenAI's leaves usage out, Bedrock's messages (of a stored prompt).
REQUIRED = {
    "openai": {"messages", "choices"},
    "anthropic": {"messages", "content", "usage"},
    "bedrock": {"output", "stopReason", "usage"},
    "gemini": {"contents"},
    "vertex_gemini": {"contents"},
    "vertex_claude": {"messages", "content", "usage", "anthropic_version"},
}
TYPED = {
    "messages", "choices", "content", "output", "stopReason", "usage",
    "contents", "generationConfig", "systemInstruction", "candidates", "usageMetadata",
}  # fmt: skip
VALIDATORS = {
    "openai": openai,
    "anthropic": anthropic,
    "bedrock": bedrock,
    "gemini": gemini,
    "vertex_gemini": vertex_gemini,
    "vertex_claude": vertex_claude,
}

READ = {"answer": "read"}
STATUS = {"answer": "status"}
# One document each: what is answered in turn, then the settings.
CASES = [
    ([READ], {}),
    ([{"answer": "text", "content": "prose"}, READ], {}),
    ([{"answer": "refusal"}], {}),
    ([{"answer": "content_filter"}], {}),
    ([{"answer": "cut", "content": "{"}], {}),
    ([READ], {"LLM__PROMPT_CACHE": "1h"}),
    ([READ], {"LLM__PROMPT_CACHE": "off"}),
    ([READ], {"LLM__STRUCTURED": "prompt"}),
    ([READ], {"LLM__STRUCTURED": "tool"}),
    ([READ], {"LLM__SERVER": "openai"}),
    ([READ], {"LLM__STREAM_ABOVE": "0"}),
    ([READ], {"LLM__STREAM_ABOVE": "0", "LLM__STRUCTURED": "tool"}),
    ([{"answer": "refusal"}], {"LLM__STREAM_ABOVE": "0"}),
    ([{"answer": "cut", "content": "{"}], {"LLM__STREAM_ABOVE": "0"}),
    ([{**STATUS, "status": 400}], {}),
    ([{**STATUS, "status": 401}], {}),
    ([{**STATUS, "status": 404}], {}),
    ([{**STATUS, "status": 500}, READ], {}),
    ([{**STATUS, "status": 429, "retry_after": "0.1"}, READ], {}),
]


def fits(vendor, settings):
    without_tools = ("openai", "gemini", "vertex_gemini")
    return not (settings.get("LLM__STRUCTURED") == "tool" and vendor in without_tools)


def credential(vendor, root):
    """A key; at Vertex AI a federation by which the stand-in itself grants the token."""
    if not vendor.startswith("vertex_"):
        return "key"
    pool = "projects/1/locations/global/workloadIdentityPools/p/providers/x"
    form = {"type": "json", "subject_token_field_name": "subject"}
    return json.dumps(
        {
            "type": "external_account",
            "audience": f"//iam.googleapis.com/{pool}",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"{root}/v1/token",
            "credential_source": {"url": f"{root}/subject", "format": form},
        }
    )


def exchanges(docmill, standin, document, vendor, answers, settings):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as script:
        json.dump({"vendor": vendor, "record": True, "answers": answers}, script)
        script.flush()
        server = subprocess.Popen(
            [standin, "--listen", "127.0.0.1:0", "--script", script.name],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            base = server.stderr.readline().split()[-1]
            root = "{0.scheme}://{0.netloc}".format(urlsplit(base))
            environment = {
                "LLM__PROVIDER": vendor.split("_")[0],
                "LLM__BASE_URL": base,
                "LLM__API_KEY": credential(vendor, root),
                "LLM__REGION": "us-east-1",
                "LLM__MODEL": "claude-model-1" if vendor == "vertex_claude" else "model-1",
                "KINDS__CLASSIFY": "false",
                **settings,
            }
            subprocess.run(
                [docmill, "process", document, "--json"],
                env={**os.environ, **{f"DOCMILL__{k}": v for k, v in environment.items()}},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            with urllib.request.urlopen(f"{root}/_exchanges") as reply:
                return json.load(reply)
        finally:
            server.terminate()
            server.wait()


def main(docmill, standin, document):
    wrong = 0
    for vendor, validate in VALIDATORS.items():
        sound = refused = 0
        for answers, settings in CASES:
            if not fits(vendor, settings):
                continue
            seen = exchanges(docmill, standin, document, vendor, answers, settings)
            if len(seen) < len(answers):
                wrong += 1
                print(f"{vendor} {answers} {settings}: {len(seen)} calls came")
            for exchange in seen:
                try:
                    validate(exchange)
                    sound += 1
                except Broken as broken:
                    wrong += 1
                    print(f"{vendor} {settings} call {exchange['number']}: {broken}")
                for what, other in spoiled(vendor, exchange):
                    try:
                        validate(other)
                        wrong += 1
                        print(f"{vendor}: the contract takes a {what}")
                    except Broken:
                        refused += 1
        print(f"{vendor}: {sound} exchanges keep the contract, {refused} spoiled ones are refused")
        if sound == 0:
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
