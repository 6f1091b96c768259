"""olmOCR's own work queue, one step at a time, for scripts/olmocr_peer.py.

    olmocr_peer_side.py WORKSPACE populate ITEMS_PER_GROUP < paths, one per line
    olmocr_peer_side.py WORKSPACE left        how many groups it would work on
    olmocr_peer_side.py WORKSPACE take [S]    takes a group and leaves it locked; locks last S
    olmocr_peer_side.py WORKSPACE drain       takes every group and marks it done
    olmocr_peer_side.py - hash PATH...        how it names a group

Prints one JSON value. A workspace of s3:// is reached at PEER_ENDPOINT.
"""

import asyncio
import json
import os
import sys

import olmocr.work_queue as theirs


def client():
    import boto3

    return boto3.client("s3", endpoint_url=os.environ["PEER_ENDPOINT"], region_name="us-east-1")


def is_newer():
    return hasattr(theirs, "LocalBackend")


def open_queue(workspace):
    is_s3 = workspace.startswith("s3://")
    if is_newer():
        backend = theirs.S3Backend(client(), workspace) if is_s3 else theirs.LocalBackend(workspace)
        return theirs.WorkQueue(backend)
    return theirs.S3WorkQueue(client(), workspace) if is_s3 else theirs.LocalWorkQueue(workspace)


def write_result(workspace, hash_of_group):
    """Writes a result as olmOCR's pipeline does between taking a group and marking it done."""
    name = f"results/output_{hash_of_group}.jsonl"
    if workspace.startswith("s3://"):
        bucket, _, prefix = workspace.removeprefix("s3://").partition("/")
        client().put_object(Bucket=bucket, Key=f"{prefix.rstrip('/')}/{name}", Body=b"")
        return
    os.makedirs(os.path.join(workspace, "results"), exist_ok=True)
    open(os.path.join(workspace, name), "w").close()


async def main(workspace, action, *arguments):
    if action == "hash":
        queue = theirs.WorkQueue if is_newer() else theirs.LocalWorkQueue
        return queue._compute_workgroup_hash(list(arguments))
    queue = open_queue(workspace)
    if action == "populate":
        paths = sys.stdin.read().split("\n")
        await queue.populate_queue([path for path in paths if path], int(arguments[0]))
        return None
    await queue.initialize_queue()
    if action == "left":
        return queue.size
    if action == "take":
        item = await queue.get_work(*map(int, arguments))
        return item and item.hash
    if action == "drain":
        done = 0
        while (item := await queue.get_work()) is not None:
            write_result(workspace, item.hash)
            await queue.mark_done(item)
            done += 1
        return done
    raise SystemExit(f"unknown action {action}")


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
