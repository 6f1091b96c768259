#!/usr/bin/env python3
"""Checks what no schema does: that the objects of a rendered overlay name each other rightly.

    check_references.py RENDERED.yaml

Every selector meets a pod or a service, every name an object, the grace is longer than the drain and
is what the worker is told. Secrets may come from outside. Needs PyYAML.
"""

import sys

import yaml

OUTSIDE = {("Secret", f"docmill-{of}") for of in ("worker", "migrate", "web", "inbox")}
# Seconds between the end of the drain and the kill, for acknowledgements and closing.
MIN_SPARE_SECONDS = 10


def seconds(text):
    return int(text.removesuffix("s"))


class Overlay:
    def __init__(self, objects):
        self.objects = [each for each in objects if each]
        self.names = {(each["kind"], each["metadata"]["name"]) for each in self.objects}
        self.wrong = []

    def of(self, *kinds):
        return (each for each in self.objects if each["kind"] in kinds)

    def get(self, kind, name):
        return next(each for each in self.of(kind) if each["metadata"]["name"] == name)

    def pods(self):
        """Owner and template of everything that makes pods."""
        for owner in self.of("Deployment", "Job"):
            yield owner, owner["spec"]["template"]

    def expect(self, holds, owner, what):
        if not holds:
            self.wrong.append(f"{owner['kind']} {owner['metadata']['name']}: {what}")

    def names_exist(self, owner, kind, name):
        known = (kind, name) in self.names | OUTSIDE
        self.expect(known, owner, f"there is no {kind} {name}")

    def meets(self, owner, selector, labels):
        found = any(selector.items() <= each.items() for each in labels)
        self.expect(found, owner, f"nothing has the labels {selector}")


def pods(overlay):
    for owner, template in overlay.pods():
        spec = template["spec"]
        if "serviceAccountName" in spec:
            overlay.names_exist(owner, "ServiceAccount", spec["serviceAccountName"])
        for container in spec["containers"]:
            for source in container.get("envFrom", []):
                for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
                    if field in source:
                        overlay.names_exist(owner, kind, source[field]["name"])
            tag = container["image"].rpartition(":")[2]
            overlay.expect(tag not in ("unset", "latest"), owner, "the image has no version")
        for volume in spec.get("volumes", []):
            if "configMap" in volume and not volume["configMap"].get("optional"):
                overlay.names_exist(owner, "ConfigMap", volume["configMap"]["name"])
        if "selector" in owner["spec"]:
            labels = [template["metadata"]["labels"]]
            overlay.meets(owner, owner["spec"]["selector"]["matchLabels"], labels)


def selectors(overlay):
    labels = [template["metadata"]["labels"] for _, template in overlay.pods()]
    services = [each["metadata"].get("labels", {}) for each in overlay.of("Service")]
    for each in overlay.of("Service"):
        overlay.meets(each, each["spec"]["selector"], labels)
    for each in overlay.of("PodDisruptionBudget"):
        overlay.meets(each, each["spec"]["selector"]["matchLabels"], labels)
    for each in overlay.of("NetworkPolicy"):
        overlay.meets(each, each["spec"]["podSelector"].get("matchLabels", {}), labels)
    for each in overlay.of("ServiceMonitor"):
        overlay.meets(each, each["spec"]["selector"]["matchLabels"], services)
        ports = {port.get("name") for one in overlay.of("Service") for port in one["spec"]["ports"]}
        for endpoint in each["spec"]["endpoints"]:
            overlay.expect(endpoint["port"] in ports, each, f"no port {endpoint['port']}")


def scaling(overlay):
    for each in overlay.of("ScaledObject"):
        overlay.names_exist(each, "Deployment", each["spec"]["scaleTargetRef"]["name"])
        for trigger in each["spec"]["triggers"]:
            if "authenticationRef" in trigger:
                name = trigger["authenticationRef"]["name"]
                overlay.names_exist(each, "TriggerAuthentication", name)
            left = [key for key, value in trigger["metadata"].items() if "overlay" in value]
            overlay.expect(not left, each, f"{left} is not set")


def stopping(overlay):
    worker = overlay.get("Deployment", "docmill-worker")
    source = worker["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]
    settings = overlay.get("ConfigMap", source["configMapRef"]["name"])["data"]
    grace = worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    told = seconds(settings["DOCMILL_STOP_TIMEOUT"])
    drain = seconds(settings["DOCMILL__WORKER__DRAIN"])
    overlay.expect(told == grace, worker, f"it is granted {grace} s and told {told} s")
    overlay.expect(drain + MIN_SPARE_SECONDS <= grace, worker, f"it drains for {drain} s and has {grace} s")


def main(path):
    with open(path, encoding="utf-8") as file:
        overlay = Overlay(yaml.safe_load_all(file))
    for check in (pods, selectors, scaling, stopping):
        check(overlay)
    for problem in overlay.wrong:
        print(f"{path}: {problem}", file=sys.stderr)
    sys.exit(1 if overlay.wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
