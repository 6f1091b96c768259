"""moto's server, of which conditional writes and deletes of objects take turns.

moto looks whether a condition holds and then writes, each request in a thread of its own: of two that
ask for a new object both may be told that they made it, which S3 never does. Here one is finished
before the next one looks. Arguments as moto_server has them. Run by moto.rs beside it.
"""

import functools
import sys
import threading

from moto.s3.responses import S3Response
from moto.server import main

TURN = threading.RLock()


def in_turn(method):
    @functools.wraps(method)
    def run(*arguments, **named):
        with TURN:
            return method(*arguments, **named)

    return run


for name in ("put_object", "delete_object", "_key_response_post"):
    setattr(S3Response, name, in_turn(getattr(S3Response, name)))
sys.exit(main())
