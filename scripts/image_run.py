#!/usr/bin/env python3
"""Runs an image as a strict platform would: root file system read-only, no /tmp, no capabilities, no
new privileges, process, mount, IPC and host name namespaces of its own, the image's own user,
environment, folder and entrypoint. The network is the host's. For machines on which container
runtimes find no cgroups they can work with; limits of memory and CPU are not set.

    buildah inspect --type image IMAGE | image_run.py ROOTFS [OPTION]... [-- ARG...]

    --env NAME=VALUE          one more variable
    --read-only HOST:INSIDE   a folder of the host
    --enter PID               run ARG... in the container whose first process that is, as `exec` does

Without ARG the image's own command. Needs root and util-linux. Standard library only.
"""

import argparse
import json
import os
import sys

NEVER = ["--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]
# In namespaces of its own: nothing of this reaches the host.
PREPARE = """
set -e
root=$1
shift
mount --bind "$root" "$root"
mount -t proc -o nosuid,noexec,nodev proc "$root/proc"
mount -t tmpfs -o nosuid,noexec,mode=755,size=64k tmpfs "$root/dev"
for device in null zero random urandom; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
while [ "$1" != -- ]; do
    mount --bind "${1%%:*}" "$root/${1#*:}"
    mount -o remount,bind,ro "$root/${1#*:}"
    shift
done
shift
mount -o remount,bind,ro "$root"
hostname docmill
exec chroot "$root" "$@"
"""


def inside(image, variables, command):
    """The command line within the container, from its root on."""
    user, _, group = (image.get("User") or "0:0").partition(":")
    identity = [f"--reuid={user}", f"--regid={group or user}"]
    environment = (image.get("Env") or []) + variables
    return ["setpriv", *identity, *NEVER, "env", "-i", *environment, *command]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    arguments.add_argument("rootfs")
    arguments.add_argument("--env", action="append", default=[])
    arguments.add_argument("--read-only", action="append", default=[])
    arguments.add_argument("--enter")
    # Argparse gives the positional rest away before it has seen the options.
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    given = arguments.parse_args(sys.argv[1:split])
    command = sys.argv[split + 1 :]
    image = json.load(sys.stdin)["OCIv1"]["config"]
    if given.enter:
        namespaces = ["--mount", "--pid", "--ipc", "--uts", "--root", "--wd"]
        enter = ["nsenter", f"--target={given.enter}", *namespaces]
        line = enter + inside(image, given.env, command)
    else:
        command = (image.get("Entrypoint") or []) + (command or image.get("Cmd") or [])
        binds = []
        for bind in given.read_only:
            os.makedirs(given.rootfs + bind.partition(":")[2], exist_ok=True)
            binds.append(bind)
        new = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child"]
        prepare = [*new, "sh", "-c", PREPARE, "sh", given.rootfs, *binds, "--"]
        line = prepare + inside(image, given.env, command)
    os.execvp(line[0], line)


if __name__ == "__main__":
    main()
