"""A published Python client of redis-work-queue, told what to do line by line (redis_peers.py):
argument: port; a line of JSON in, a line of JSON out."""

import base64
import contextlib
import json
import sys

from redis import Redis
from redis_work_queue import Item, KeyPrefix, WorkQueue

db = Redis(host="127.0.0.1", port=int(sys.argv[1]))
queue = WorkQueue(KeyPrefix("shared"))
leased = {}
for line in sys.stdin:
    ask = json.loads(line)
    answer = None
    # Its cleaner prints what it does.
    with contextlib.redirect_stdout(sys.stderr):
        if ask["do"] == "add":
            queue.add_item(db, Item(base64.b64decode(ask["data"]), id=ask["id"]))
        elif ask["do"] == "lease":
            item = queue.lease(db, ask["seconds"], block=False)
            if item is not None:
                leased[item.id()] = item
                answer = {"id": item.id(), "data": base64.b64encode(item.data()).decode()}
        elif ask["do"] == "complete":
            answer = queue.complete(db, leased[ask["id"]])
        elif ask["do"] == "clean":
            queue.light_clean(db)
        elif ask["do"] == "counts":
            answer = [queue.queue_len(db), queue.processing(db)]
    print(json.dumps(answer), flush=True)
