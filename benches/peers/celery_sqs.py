"""Celery over SQS: no-op tasks, a worker process with threads, no result backend.

Arguments: jobs, jobs at the same time. SQS_ENDPOINT, SQS_URL. Prints one line of JSON. Not promised:
that it is Celery's fastest pool; prefork starts a process per task slot, and on two cores was slower.
"""

import json
import os
import resource
import sys
import threading
import time
from urllib.parse import urlparse

from celery import Celery

JOBS, CONCURRENCY = int(sys.argv[1]), int(sys.argv[2])
ENDPOINT = urlparse(os.environ["SQS_ENDPOINT"])

app = Celery("bench", broker=f"sqs://test:test@{ENDPOINT.hostname}:{ENDPOINT.port}//")
app.conf.update(
    broker_transport_options={
        "is_secure": False,
        "region": "us-east-1",
        "wait_time_seconds": 1,
        "predefined_queues": {
            "celery": {
                "url": os.environ["SQS_URL"],
                "access_key_id": "test",
                "secret_access_key": "test",
            }
        },
    },
    task_ignore_result=True,
    worker_prefetch_multiplier=4,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
    broker_connection_retry_on_startup=False,
)

done = 0
lock = threading.Lock()
measured = {}


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@app.task
def noop(_number):
    global done
    with lock:
        if not measured:
            measured.update(started=time.monotonic(), cpu=cpu_seconds())
        done += 1
        if done < JOBS:
            return
    seconds = time.monotonic() - measured["started"]
    cpu = cpu_seconds() - measured["cpu"]
    # Celery takes sys.stdout for its log, which is silent below an error.
    line = json.dumps({"jobs": done, "seconds": seconds, "cpu_us": cpu * 1e6 / done})
    print(line, file=sys.__stdout__, flush=True)
    # The last acknowledgements are not waited for: in its favour.
    os._exit(0)


for number in range(JOBS):
    noop.delay(number)
app.Worker(
    concurrency=CONCURRENCY,
    pool="threads",
    loglevel="ERROR",
    without_gossip=True,
    without_mingle=True,
    without_heartbeat=True,
).start()
