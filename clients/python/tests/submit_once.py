"""One submission to the address that is named, three tries; prints how it fared in one word."""

import sys

from docmill_api import ApiClient, ApiFailure, ApiProblem, RetryPace

client = ApiClient(sys.argv[1], "t", pace=RetryPace(tries=3))
try:
    print(client.submit_document(b"%PDF", "a b.pdf").fate)
except ApiProblem as problem:
    print(problem.code)
except ApiFailure as failure:
    print(type(failure).__name__)
