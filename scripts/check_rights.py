#!/usr/bin/env python3
"""Checks what the roles of the templates may do: what docmill's processes ask for, and no more.

    check_rights.py

Evaluates the policies of deploy/ecs/*.yaml and deploy/kubernetes/worker-policy.yaml as IAM does (without
conditions, which they have none of), for a bucket and queues of invented names. Needs PyYAML.
"""

import fnmatch
import sys

import yaml

BUCKET = "arn:aws:s3:::made-up"
QUEUE = "arn:aws:sqs:eu-central-1:111122223333:documents"
DEAD = "arn:aws:sqs:eu-central-1:111122223333:dead"
KEY = "arn:aws:kms:eu-central-1:111122223333:key/k"
MODEL = "arn:aws:bedrock:eu-central-1::foundation-model/m"
JOB = "arn:aws:bedrock:eu-central-1:111122223333:model-invocation-job/j"
BATCH_ROLE = "arn:aws:iam::111122223333:role/batches"
BATCH_BUCKET = "arn:aws:s3:::made-up-batches"
TIER = "arn:aws:sqs:eu-central-1:111122223333:made-up-urgent"
OTHER_BUCKET = "arn:aws:s3:::made-up-uploads"
GIVEN = {
    "TierQueueArns": [TIER],
    "OtherBucketArns": [OTHER_BUCKET],
    "OtherDocumentArns": [f"{OTHER_BUCKET}/inbox/*"],
    "BucketArn": BUCKET,
    "QueueArn": QUEUE,
    "DeadLetterQueueArn": DEAD,
    "DocumentPrefix": "in/",
    "DataKeyArns": [KEY],
    "ModelProvider": "bedrock",
    "BedrockModelArns": [MODEL],
    "BedrockBatchRoleArn": BATCH_ROLE,
    "BedrockBatchBucketArn": BATCH_BUCKET,
    "Cluster": "cluster",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-central-1",
    "AWS::AccountId": "111122223333",
}
HANDED_IN = f"{BUCKET}/documents/0d0d.pdf"
OF_PRODUCERS = f"{BUCKET}/in/0d0d.pdf"
UPLOAD = f"{BUCKET}/uploads/owner/0d0d"
ARTEFACT = f"{BUCKET}/ingestions/0d0d/transcript"
ELSEWHERE = f"{BUCKET}/payroll/0d0d.pdf"
QUEUE_QUESTIONS = ["sqs:GetQueueUrl", "sqs:GetQueueAttributes"]

# Actions of each process, by resource.
NEEDS = {
    "worker": {
        QUEUE: [*QUEUE_QUESTIONS, "sqs:ReceiveMessage", "sqs:ChangeMessageVisibility",
                "sqs:DeleteMessage", "sqs:SendMessage"],
        DEAD: [*QUEUE_QUESTIONS, "sqs:ReceiveMessage", "sqs:ChangeMessageVisibility", "sqs:DeleteMessage"],
        TIER: [*QUEUE_QUESTIONS, "sqs:ReceiveMessage", "sqs:ChangeMessageVisibility",
               "sqs:DeleteMessage", "sqs:SendMessage"],
        OTHER_BUCKET: ["s3:ListBucket"],
        f"{OTHER_BUCKET}/inbox/0d0d.pdf": ["s3:GetObject"],
        f"{OTHER_BUCKET}/payroll/0d0d.pdf": [],
        BUCKET: ["s3:ListBucket"],
        OF_PRODUCERS: ["s3:GetObject"],
        ARTEFACT: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        KEY: ["kms:Decrypt", "kms:GenerateDataKey"],
        # Handed in over HTTP, wherever producers put theirs.
        HANDED_IN: ["s3:GetObject"],
        UPLOAD: [],
        ELSEWHERE: [],
        MODEL: ["bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream",
                "bedrock:CreateModelInvocationJob"],
        JOB: ["bedrock:CreateModelInvocationJob", "bedrock:GetModelInvocationJob",
              "bedrock:StopModelInvocationJob"],
        BATCH_ROLE: ["iam:PassRole"],
        BATCH_BUCKET: ["s3:ListBucket"],
        f"{BATCH_BUCKET}/docmill-batches/j/q.jsonl": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        f"{BATCH_BUCKET}/other/q.jsonl": [],
    },
    "web": {
        # A retry, a document that was handed in; the depth, and dead letters shown and sent again.
        QUEUE: [*QUEUE_QUESTIONS, "sqs:SendMessage"],
        DEAD: [*QUEUE_QUESTIONS, "sqs:ReceiveMessage", "sqs:ChangeMessageVisibility", "sqs:DeleteMessage"],
        BUCKET: ["s3:ListBucket"],
        HANDED_IN: ["s3:GetObject", "s3:PutObject"],
        OF_PRODUCERS: ["s3:GetObject"],
        # The address is signed with the role's own rights.
        UPLOAD: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        ARTEFACT: ["s3:GetObject"],
        KEY: ["kms:Decrypt", "kms:GenerateDataKey"],
        ELSEWHERE: [],
    },
    "inbox": {
        QUEUE: [*QUEUE_QUESTIONS, "sqs:SendMessage"],
        DEAD: QUEUE_QUESTIONS,
        BUCKET: ["s3:ListBucket"],
        HANDED_IN: ["s3:GetObject", "s3:PutObject"],
        OF_PRODUCERS: [],
        UPLOAD: [],
        ARTEFACT: [],
        KEY: ["kms:Decrypt", "kms:GenerateDataKey"],
        ELSEWHERE: [],
    },
}
ACTIONS = sorted({action for needs in NEEDS.values() for of in needs.values() for action in of}
                 | {"s3:PutObjectAcl", "s3:DeleteBucket", "sqs:PurgeQueue", "sqs:DeleteQueue"})
# Template, resource, process.
ROLES = [
    ("deploy/ecs/service.yaml", "WorkerRole", "worker"),
    ("deploy/ecs/web.yaml", "WebRole", "web"),
    ("deploy/ecs/inbox.yaml", "InboxRole", "inbox"),
    ("deploy/kubernetes/worker-policy.yaml", "WorkerPolicy", "worker"),
    ("deploy/kubernetes/worker-policy.yaml", "WebPolicy", "web"),
]


class TemplateLoader(yaml.SafeLoader):
    """YAML with CloudFormation's short functions, each as {NAME: argument}."""


def load_function(loader, suffix, node):
    construct = {
        yaml.ScalarNode: loader.construct_scalar,
        yaml.SequenceNode: lambda node: loader.construct_sequence(node, deep=True),
        yaml.MappingNode: lambda node: loader.construct_mapping(node, deep=True),
    }[type(node)]
    return {suffix: construct(node)}


TemplateLoader.add_multi_constructor("!", load_function)


class StackTemplate:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.template = yaml.load(file, TemplateLoader)
        defaults = {name: one.get("Default") for name, one in self.template["Parameters"].items()}
        self.values = defaults | {name: GIVEN[name] for name in GIVEN if name in defaults or "::" in name}
        self.values.setdefault("Cluster", GIVEN["Cluster"])

    def resolve(self, value):
        if isinstance(value, list):
            found = (self.resolve(one) for one in value)
            return [one for one in found if one != {"Ref": "AWS::NoValue"}]
        if not isinstance(value, dict) or len(value) != 1:
            return value
        (name, argument), = value.items()
        if name == "Ref" and argument != "AWS::NoValue":
            return self.values[argument]
        if name == "Sub":
            for known, text in self.values.items():
                argument = argument.replace(f"${{{known}}}", str(text))
            return argument
        if name == "If":
            condition, then, otherwise = argument
            return self.resolve(then if self.holds(self.template["Conditions"][condition]) else otherwise)
        return value

    def holds(self, condition):
        (name, argument), = condition.items()
        if name == "Not":
            return not self.holds(argument[0])
        if name == "Condition":
            return self.holds(self.template["Conditions"][argument])
        if name == "And":
            return all(self.holds(one) for one in argument)
        if name == "Or":
            return any(self.holds(one) for one in argument)
        if name == "Equals":
            left, right = (self.joined(one) for one in argument)
            return left == right
        raise ValueError(name)

    def joined(self, value):
        if isinstance(value, dict) and "Join" in value:
            separator, parts = value["Join"]
            parts = self.resolve(parts)
            return separator.join(parts if isinstance(parts, list) else [parts])
        return self.resolve(value)

    def statements(self, resource):
        properties = self.template["Resources"][resource]["Properties"]
        documents = [one["PolicyDocument"] for one in properties.get("Policies", [properties])]
        return [one for document in documents for one in self.resolve(document["Statement"])]

    def allows(self, resource, action, of):
        """Whether some statement lets the role do that, and none forbids it."""
        listed = lambda value: value if isinstance(value, list) else [value]
        verdict = False
        for one in self.statements(resource):
            actions, places = listed(one["Action"]), listed(self.resolve(one["Resource"]))
            places = [self.resolve(place) for place in places]
            if not any(fnmatch.fnmatchcase(action, pattern) for pattern in actions):
                continue
            if any(fnmatch.fnmatchcase(of, pattern) for pattern in places):
                if one["Effect"] != "Allow":
                    return False
                verdict = True
        return verdict


def main():
    wrong = []
    for path, resource, process in ROLES:
        template = StackTemplate(path)
        for of, needed in NEEDS[process].items():
            for action in ACTIONS:
                allowed = template.allows(resource, action, of)
                if allowed != (action in needed):
                    verb = "may not" if action in needed else "may"
                    wrong.append(f"{path}, {resource}: {process} {verb} {action} {of}")
    storage = StackTemplate("deploy/ecs/storage.yaml")
    rules = storage.template["Resources"]["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    of_uploads = [one for one in rules if one.get("Prefix") == "uploads/" and one.get("ExpirationInDays") == 1]
    if not of_uploads or of_uploads[0]["Status"] != "Enabled":
        wrong.append("deploy/ecs/storage.yaml: what is put below uploads/ and never handed in stays")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
