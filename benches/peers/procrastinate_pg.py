"""Procrastinate: no-op tasks out of Postgres, an asyncio worker.

Arguments: jobs, jobs at the same time. DATABASE_URL. Prints one line of JSON.
"""

import asyncio
import json
import logging
import os
import resource
import sys
import time

from procrastinate import App, PsycopgConnector

JOBS, CONCURRENCY = int(sys.argv[1]), int(sys.argv[2])
logging.disable(logging.CRITICAL)
app = App(
    connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"], min_size=10, max_size=10)
)


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@app.task(name="noop")
async def noop(number):
    del number


async def main():
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        for sent in range(0, JOBS, 1000):
            rows = [{"number": number} for number in range(sent, min(sent + 1000, JOBS))]
            await noop.batch_defer_async(*rows)
        started, cpu = time.monotonic(), cpu_seconds()
        await app.run_worker_async(
            concurrency=CONCURRENCY, wait=False, install_signal_handlers=False, listen_notify=False
        )
        seconds, cpu = time.monotonic() - started, cpu_seconds() - cpu
        print(json.dumps({"jobs": JOBS, "seconds": seconds, "cpu_us": cpu * 1e6 / JOBS}))


asyncio.run(main())
