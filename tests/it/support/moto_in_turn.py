"""moto's server, of which what has to be one step takes turns.

moto looks and then writes, each request in a thread of its own: of two that ask for a new object both may
be told that they made it, and of two that receive both may be given the same message, which S3 never does
and SQS not within the same moment. Here one is finished before the next one looks. A receive that waits for
messages does so outside of its turn. Arguments as moto_server has them. Run by moto.rs beside it.
"""

import functools
import sys
import threading
import time

from moto.s3.responses import S3Response
from moto.server import main
from moto.sqs.models import SQSBackend

TURN = threading.RLock()


def in_turn(method):
    @functools.wraps(method)
    def run(*arguments, **named):
        with TURN:
            return method(*arguments, **named)

    return run


def receive_in_turn(receive):
    @functools.wraps(receive)
    def run(backend, queue_name, count, wait_seconds, *arguments, **named):
        end = time.monotonic() + wait_seconds
        while True:
            with TURN:
                messages = receive(backend, queue_name, count, 0, *arguments, **named)
            left = end - time.monotonic()
            if messages or left <= 0:
                return messages
            backend.get_queue(queue_name).wait_for_messages(min(left, 1))
            # Messages of a group that is being worked on count as there: asked for without a pause, they
            # would keep a core busy.
            time.sleep(0.02)

    return run


for name in ("put_object", "delete_object", "_key_response_post"):
    setattr(S3Response, name, in_turn(getattr(S3Response, name)))
for name in (
    "send_message",
    "send_message_batch",
    "delete_message",
    "delete_message_batch",
    "change_message_visibility",
    "change_message_visibility_batch",
):
    setattr(SQSBackend, name, in_turn(getattr(SQSBackend, name)))
SQSBackend.receive_message = receive_in_turn(SQSBackend.receive_message)
sys.exit(main())
