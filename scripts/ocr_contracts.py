"""Holds recorded exchanges with readers of pages against the vendors' own descriptions.

    ocr_contracts.py FOLDER

The discovery document of Document AI comes with google-api-python-client, the service model of
Textract with botocore, the types of Mistral OCR with mistralai, those of Document Intelligence and the
requests of its own client with azure-ai-documentintelligence. Every request that our clients sent
and every reply that the stand-ins gave has to be valid by them. Afterwards each exchange is broken on
purpose in ways that must be found, so that a validator that accepts everything does not pass. Exit
code 1: something is not as described.
"""

import base64
import copy
import datetime
import enum
import json
import pathlib
import sys
import typing
from urllib.parse import parse_qs, urlsplit

import azure.ai.documentintelligence._model_base as azure_base
import azure.ai.documentintelligence._operations._operations as azure_calls
import azure.ai.documentintelligence.models as azure_models
import azure.ai.documentintelligence.models._models as azure_module
import botocore.loaders
import botocore.model
import botocore.validate
import googleapiclient
import jsonschema
from mistralai.client.models import OCRRequest, OCRResponse
from pydantic import ValidationError

INTEGERS = {"int32": "integer", "uint32": "integer"}


def discovery():
    folder = pathlib.Path(googleapiclient.__file__).parent
    return json.loads((folder / "discovery_cache/documents/documentai.v1.json").read_text())


def json_schema(schema):
    """A schema of a discovery document as JSON Schema: 64-bit numbers are strings, bytes are base64,
    and fields that are not described are not allowed."""
    if "$ref" in schema:
        return {"$ref": "#/$defs/" + schema["$ref"]}
    kind, form = schema.get("type"), schema.get("format")
    if kind == "object" and "properties" in schema:
        fields = {name: json_schema(field) for name, field in schema["properties"].items()}
        return {"type": "object", "properties": fields, "additionalProperties": False}
    if kind == "object":
        return {"type": "object", "additionalProperties": json_schema(schema["additionalProperties"])}
    if kind == "array":
        return {"type": "array", "items": json_schema(schema["items"])}
    if kind == "any":
        return {}
    if kind == "string" and form in ("int64", "uint64"):
        return {"type": "string", "pattern": r"^-?[0-9]+$"}
    if kind == "string" and form == "byte":
        return {"type": "string", "pattern": r"^[A-Za-z0-9+/_-]*={0,2}$"}
    described = {"type": "integer" if kind == "integer" else kind}
    if "enum" in schema:
        described["enum"] = schema["enum"]
    return described


class DocumentAi:
    def __init__(self):
        document = discovery()
        self.revision = document["revision"]
        definitions = {name: json_schema(schema) for name, schema in document["schemas"].items()}
        method = document["resources"]["projects"]["resources"]["locations"]["resources"]
        method = method["processors"]["methods"]["process"]
        self.sides = {
            side: jsonschema.Draft202012Validator(
                {"$ref": "#/$defs/" + method[side]["$ref"], "$defs": definitions}
            )
            for side in ("request", "response")
        }

    def problems(self, exchange):
        found = []
        for side, body in (("request", exchange["request"]), ("response", exchange["reply"])):
            for error in self.sides[side].iter_errors(body):
                found.append(f"{side} {error.json_path}: {error.message[:200]}")
        return found

    def broken(self, exchange):
        unknown = copy.deepcopy(exchange)
        unknown["request"]["rawDocument"]["mime_type"] = "image/png"
        yield "a field in another spelling", unknown
        number = copy.deepcopy(exchange)
        token = number["reply"]["document"]["pages"][0]["tokens"][0]
        token["layout"]["textAnchor"]["textSegments"][0]["endIndex"] = 3
        yield "a 64-bit number as a number", number
        text = copy.deepcopy(exchange)
        text["reply"]["document"]["pages"][0]["dimension"]["width"] = "wide"
        yield "a size as a text", text


class Textract:
    def __init__(self):
        description = botocore.loaders.Loader().load_service_model("textract", "service-2")
        self.model = botocore.model.ServiceModel(description)

    def problems(self, exchange):
        operation = self.model.operation_model(exchange["operation"])
        sides = (
            ("request", operation.input_shape, with_bytes(exchange["request"])),
            ("response", operation.output_shape, exchange["reply"]),
        )
        found = []
        for side, shape, body in sides:
            report = botocore.validate.ParamValidator().validate(body, shape)
            found += [f"{side} {line}" for line in report.generate_report().splitlines()]
            found += [f"{side} {line}" for line in values(body, shape, "")]
        return found

    def broken(self, exchange):
        unknown = copy.deepcopy(exchange)
        unknown["request"]["Unheard"] = 1
        yield "a field that there is not", unknown
        nested = copy.deepcopy(exchange)
        nested["reply"]["DocumentMetadata"] = {"Pages": {"Pages": 1}}
        if exchange["operation"] != "StartDocumentTextDetection":
            yield "a number of pages that is none", nested
        if "JobStatus" in exchange["reply"]:
            status = copy.deepcopy(exchange)
            status["reply"]["JobStatus"] = "DONE"
            yield "a status that there is not", status


class MistralOcr:
    """The types of mistralai ignore fields that they do not have, so names are compared as well."""

    def problems(self, exchange):
        sides = (("request", OCRRequest, exchange["request"]), ("response", OCRResponse, exchange["reply"]))
        found = []
        for side, described, body in sides:
            found += [f"{side}: {key} is not described" for key in body.keys() - described.model_fields.keys()]
            try:
                described.model_validate(body)
            except ValidationError as error:
                found += [f"{side} {one['loc']}: {one['msg']}" for one in error.errors()]
        return found

    def broken(self, exchange):
        unknown = copy.deepcopy(exchange)
        unknown["request"]["image_base64"] = True
        yield "a field that there is not", unknown
        kind = copy.deepcopy(exchange)
        kind["request"]["document"] = {"type": "picture", "image_url": "data:,"}
        yield "a document of no sort", kind
        text = copy.deepcopy(exchange)
        del text["reply"]["pages"][0]["markdown"]
        yield "a page without text", text


class DocumentIntelligence:
    """Its client writes every request; the analysis, which it polls at an address it was given, lies
    where it removes the result. Of that operation it describes the result and the states only."""

    OPERATION = {"status", "createdDateTime", "lastUpdatedDateTime", "analyzeResult", "error"}

    def problems(self, exchange):
        request, reply = exchange["request"], exchange["reply"]
        if reply["status"] >= 400:
            return list(described(azure_models.DocumentIntelligenceErrorResponse, reply["body"], "error"))
        return [*self.wrong_request(request), *self.wrong_reply(request, reply)]

    def wrong_request(self, request):
        query = {name: values[0] for name, values in parse_qs(request["query"]).items()}
        model, _, rest = request["path"].rpartition("/documentModels/")[2].partition("/")
        if request["method"] == "POST":
            written = azure_calls.build_document_intelligence_analyze_document_request(
                model.removesuffix(":analyze"),
                string_index_type=query.get("stringIndexType"),
                content_type=request["content_type"],
            )
            kinds = azure_models.StringIndexType
            if query.get("stringIndexType") not in list(kinds):
                yield "request: another index of characters than " + ", ".join(kinds)
        elif rest:
            written = deleting(model, rest)
        else:
            written = azure_calls.build_document_intelligence_administration_get_model_request(model)
        if request["method"] != written.method and not (request["method"] == "GET" and rest):
            yield f"request: its client calls by {written.method}"
        if called(written) != ("/documentintelligence", request["path"], query):
            yield f"request: its client calls {written.url}"

    def wrong_reply(self, request, reply):
        body = reply["body"]
        expected = {"POST": 202, "DELETE": 204, "GET": 200}[request["method"]]
        if reply["status"] != expected or (body is None) != (expected != 200):
            yield f"response: status {reply['status']} or its body"
        elif request["method"] == "POST":
            place = urlsplit(reply["operation_location"])
            model, _, rest = place.path.rpartition("/documentModels/")[2].partition("/")
            query = {name: values[0] for name, values in parse_qs(place.query).items()}
            if called(deleting(model, rest)) != ("/documentintelligence", place.path, query):
                yield f"response: no address of an analysis: {place.geturl()}"
        elif request["method"] == "GET" and "/analyzeResults/" not in request["path"]:
            yield from described(azure_models.DocumentModelDetails, body, "response")
        elif request["method"] == "GET":
            yield from (f"response: {key} is not described" for key in body.keys() - self.OPERATION)
            states = azure_models.DocumentIntelligenceOperationStatus
            yield from described(states, body.get("status"), "response status")
            for key in ("createdDateTime", "lastUpdatedDateTime"):
                yield from described(datetime.datetime, body.get(key), f"response {key}")
            if body.get("status") == "succeeded":
                yield from described(azure_models.AnalyzeResult, body.get("analyzeResult"), "result")
            if body.get("status") == "failed":
                yield from described(azure_models.DocumentIntelligenceError, body.get("error"), "error")

    def broken(self, exchange):
        body = exchange["reply"]["body"]
        if exchange["reply"]["status"] >= 400:
            error = copy.deepcopy(exchange)
            del error["reply"]["body"]["error"]["message"]
            yield "an error without a message", error
            return
        version = copy.deepcopy(exchange)
        version["request"]["query"] = version["request"]["query"].replace("2024-11-30", "2023-07-31")
        yield "another version", version
        if exchange["request"]["method"] == "POST":
            place = copy.deepcopy(exchange)
            place["reply"]["operation_location"] = "http://localhost/analyzeResults/1"
            yield "an analysis elsewhere", place
            kind = copy.deepcopy(exchange)
            kind["request"]["query"] = kind["request"]["query"].replace("unicodeCodePoint", "bytes")
            yield "an index that there is not", kind
        if body and "status" in body:
            state = copy.deepcopy(exchange)
            state["reply"]["body"]["status"] = "done"
            yield "a state that there is not", state
        if body and "analyzeResult" in body:
            page = copy.deepcopy(exchange)
            del page["reply"]["body"]["analyzeResult"]["pages"][0]["words"][0]["span"]
            yield "a word without its characters", page
            unknown = copy.deepcopy(exchange)
            unknown["reply"]["body"]["analyzeResult"]["pages"][0]["page_number"] = 1
            yield "a field in another spelling", unknown


def deleting(model, rest):
    result = rest.removeprefix("analyzeResults/")
    return azure_calls.build_document_intelligence_delete_analyze_result_request(model, result)


def called(written):
    """Prefix, path and query of a request of Azure's client."""
    parts = urlsplit(written.url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    prefix = "/documentintelligence"
    return prefix, prefix + parts.path, query


def described(kind, body, at):
    """The ways in which a body is not of a type of Azure's models. Its own parser takes anything."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union:
        # A word of an enumeration, or nothing where a field may be missing.
        named = [one for one in inner if isinstance(one, type) and issubclass(one, enum.Enum)]
        real = named or [one for one in inner if one is not type(None)]
        if body is not None or type(None) not in inner:
            yield from described(real[0], body, at)
    elif origin is list:
        if not isinstance(body, list):
            yield f"{at}: no list"
            return
        for number, entry in enumerate(body):
            yield from described(inner[0], entry, f"{at}[{number}]")
    elif origin is dict:
        for key, entry in body.items():
            yield from described(inner[1], entry, f"{at}.{key}")
    elif issubclass(kind, azure_base.Model):
        yield from described_model(kind, body, at)
    elif issubclass(kind, enum.Enum):
        if body not in [one.value for one in kind]:
            yield f"{at}: {body} is none of {', '.join(kind)}"
    elif kind is datetime.datetime:
        try:
            datetime.datetime.fromisoformat(body)
        except (TypeError, ValueError):
            yield f"{at}: no time"
    elif isinstance(body, bool) != (kind is bool) or not isinstance(body, (int, kind) if kind is float else kind):
        yield f"{at}: no {kind.__name__}"


def described_model(kind, body, at):
    if not isinstance(body, dict):
        yield f"{at}: no {kind.__name__}"
        return
    kind({})  # Its fields are listed with the first one that is made.
    hints = typing.get_type_hints(kind, {**vars(azure_module), "_models": azure_models})
    names = {field._rest_name: hints[name] for name, field in kind._attr_to_rest_field.items()}
    yield from (f"{at}: {key} is not described" for key in body.keys() - names.keys())
    for name, hint in names.items():
        if name in body:
            yield from described(hint, body[name], f"{at}.{name}")
        elif type(None) not in typing.get_args(hint):
            yield f"{at}: {name} is missing"


def with_bytes(request):
    """On the wire bytes are base64; botocore wants them decoded."""
    request = copy.deepcopy(request)
    document = request.get("Document", {})
    if "Bytes" in document:
        document["Bytes"] = base64.b64decode(document["Bytes"], validate=True)
    return request


def values(body, shape, path):
    """Enumerations, lengths and patterns, which botocore's validator does not look at."""
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            if isinstance(body, dict) and name in body:
                yield from values(body[name], member, f"{path}.{name}")
    elif shape.type_name == "list" and isinstance(body, list):
        for at, entry in enumerate(body):
            yield from values(entry, shape.member, f"{path}[{at}]")
    elif shape.type_name == "string" and isinstance(body, str):
        if shape.enum and body not in shape.enum:
            yield f"{path}: {body} is none of {', '.join(shape.enum)}"
        longest = shape.metadata.get("max")
        if longest is not None and len(body) > longest:
            yield f"{path}: {len(body)} characters, {longest} are allowed"


def main(folder):
    services = {
        "document_ai": DocumentAi(),
        "textract": Textract(),
        "mistral_ocr": MistralOcr(),
        "document_intelligence": DocumentIntelligence(),
    }
    files = sorted(pathlib.Path(folder).glob("*.json"))
    seen, wrong = {name: 0 for name in services}, []
    missed = 0
    for file in files:
        exchange = json.loads(file.read_text())
        service = services[exchange["service"]]
        seen[exchange["service"]] += 1
        wrong += [f"{file.name}: {problem}" for problem in service.problems(exchange)]
        for how, broken in service.broken(exchange):
            if not service.problems(broken):
                missed += 1
                wrong.append(f"{file.name}: {how} was not found")
    for name, count in seen.items():
        if count == 0:
            wrong.append(f"{name}: no exchange was recorded")
    for line in wrong:
        print(line)
    revision = services["document_ai"].revision
    print(
        f"document_ai: {seen['document_ai']} exchanges against v1, revision {revision}; "
        f"textract: {seen['textract']} against 2018-06-27; "
        f"mistral_ocr: {seen['mistral_ocr']} against mistralai's types; "
        f"document_intelligence: {seen['document_intelligence']} against azure-ai-documentintelligence's; "
        f"{len(wrong) - missed} problems, {missed} of our own breaches not found"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: ocr_contracts.py FOLDER")
    sys.exit(main(sys.argv[1]))
