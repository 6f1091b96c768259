#!/usr/bin/env python3
"""Makes a bucket and a queue with its dead-letter queue at a stand-in for AWS (Moto), with the
attributes that deploy/ecs/storage.yaml gives them in an account.

    aws_stand_in.py ENDPOINT NAME
    aws_stand_in.py ENDPOINT NAME KEY <FILE

Bucket and queue are both called NAME. Prints the queue's URL. With a KEY it puts what it is given on
standard input into the bucket instead. Needs boto3; may be run again.
"""

import json
import sys

import boto3

MAX_RECEIVES = 1000
FOURTEEN_DAYS = "1209600"


def client(service, endpoint):
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="stand-in",
        aws_secret_access_key="stand-in",
    )


def queue(sqs, name, **attributes):
    """URL and ARN of a queue, made if it is not there."""
    attributes["MessageRetentionPeriod"] = FOURTEEN_DAYS
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return url, found["Attributes"]["QueueArn"]


def put(endpoint, bucket, key):
    body = sys.stdin.buffer.read()
    client("s3", endpoint).put_object(Bucket=bucket, Key=key, Body=body)
    print(f"s3://{bucket}/{key}")


def make(endpoint, name):
    sqs = client("sqs", endpoint)
    _, dead = queue(sqs, f"{name}-dead")
    policy = {"deadLetterTargetArn": dead, "maxReceiveCount": MAX_RECEIVES}
    url, _ = queue(sqs, name, VisibilityTimeout="120", RedrivePolicy=json.dumps(policy))
    client("s3", endpoint).create_bucket(Bucket=name)
    print(url)


if __name__ == "__main__":
    (put if len(sys.argv) == 4 else make)(*sys.argv[1:])
