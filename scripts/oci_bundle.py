#!/usr/bin/env python3
"""Writes the config.json with which an OCI runtime (crun, runc) starts an image as a strict
platform would: root file system read-only, no /tmp, no capabilities, no new privileges, a process
namespace of its own, the image's own user, environment and entrypoint. The network is the host's.

    buildah inspect IMAGE | oci_bundle.py ROOTFS [--env K=V]... [--read-only HOST:INSIDE]... -- ARG...

Without ARG the image's own command. Standard library only.
"""

import argparse
import json
import sys

NAMESPACES = ("pid", "ipc", "uts", "mount")
MOUNTS = [
    ("/proc", "proc", "proc", ["nosuid", "noexec", "nodev"]),
    ("/dev", "tmpfs", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
    ("/dev/pts", "devpts", "devpts", ["nosuid", "noexec", "newinstance", "ptmxmode=0666"]),
]


def bundle(image, rootfs, variables, binds, command):
    """The configuration, as a dictionary."""
    user, _, group = (image.get("User") or "0:0").partition(":")
    mounts = [
        {"destination": place, "type": kind, "source": source, "options": options}
        for place, kind, source, options in MOUNTS
    ]
    for bind in binds:
        source, _, place = bind.partition(":")
        mounts.append(
            {"destination": place, "type": "bind", "source": source, "options": ["bind", "ro"]}
        )
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": int(user), "gid": int(group or user)},
            "args": (image.get("Entrypoint") or []) + (command or image.get("Cmd") or []),
            "env": (image.get("Env") or []) + variables,
            "cwd": image.get("WorkingDir") or "/",
            "capabilities": {},
            "noNewPrivileges": True,
            "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 65536, "hard": 65536}],
        },
        "root": {"path": rootfs, "readonly": True},
        "hostname": "docmill",
        "mounts": mounts,
        "linux": {"namespaces": [{"type": name} for name in NAMESPACES]},
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    arguments.add_argument("rootfs")
    arguments.add_argument("--env", action="append", default=[])
    arguments.add_argument("--read-only", action="append", default=[])
    # Argparse gives the positional rest away before it has seen the options.
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    given = arguments.parse_args(sys.argv[1:split])
    command = sys.argv[split + 1 :]
    image = json.load(sys.stdin)["OCIv1"]["config"]
    made = bundle(image, given.rootfs, given.env, given.read_only, command)
    json.dump(made, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
