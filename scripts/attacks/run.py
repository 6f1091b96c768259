"""Runs the attacks named in the arguments, or all of them, and prints a table. See attacks.sh."""

import sys
import time
import traceback

import messages
import reading
from world import MemoryGroup

ATTACKS = {
    "text_bomb": reading.text_bomb,
    "raw_deflate": reading.raw_deflate,
    "dates_in_a_line": reading.dates_in_a_line,
    "archived_object": messages.archived_object,
    "group_of_unknown": messages.group_of_unknown,
    "forged_event": messages.forged_event,
    "search_path": messages.search_path,
    "lying_page_process": reading.lying_page_process,
    "orphan": reading.orphan,
    "confinement": reading.confinement,
    "hidden_text": reading.hidden_text,
    "secrets_in_errors": messages.secrets_in_errors,
    "escape_sequences": messages.escape_sequences,
    "idle_sockets": messages.idle_sockets,
    "erase_through_an_alias": messages.erase_through_an_alias,
    "wide_xml": reading.wide_xml,
}


def main():
    named = sys.argv[1:] or list(ATTACKS)
    unknown = [name for name in named if name not in ATTACKS]
    if unknown:
        sys.exit(f"no such attack: {', '.join(unknown)}; there are {', '.join(ATTACKS)}")
    group = MemoryGroup(1 << 30)
    limited = "memory cgroup" if group.path else "address space"
    group.close()
    results = []
    for name in named:
        began = time.monotonic()
        try:
            verdict, seen = "safe", ATTACKS[name]()
        except reading.GotThrough as error:
            verdict, seen = "GOT THROUGH", str(error)
        except Exception:
            verdict, seen = "NOT RUN", traceback.format_exc(limit=-2).strip()
        results.append(verdict)
        print(f"{verdict:11} {name} ({time.monotonic() - began:.0f} s): {seen}", flush=True)
    safe = results.count("safe")
    print(f"{safe} of {len(results)} safe; memory limited by {limited}")
    sys.exit(safe != len(results))


main()
