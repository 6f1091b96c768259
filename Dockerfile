# The worker's image. Packages come from scripts/packages.txt, as everywhere.
#   docker build -t docmill .

ARG RUST_IMAGE=docker.io/library/rust:1.95-slim-bookworm
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim

FROM ${RUST_IMAGE} AS build
COPY scripts/packages.txt /packages.txt
RUN apt-get update \
    && apt-get install -y --no-install-recommends $(awk '$1 == "build" { print $2 }' /packages.txt) \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# The caches are not part of the layer: the binary is copied out of them.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/src/target,sharing=locked \
    cargo build --locked --profile image --package docmill --bin docmill \
    && cp target/image/docmill /docmill
# The libraries it is linked with, as far as the base does not bring them. Their packages would
# bring ten times as much besides: OpenCV's are linked with those of a desktop.
RUN mkdir /libraries \
    && ldd /docmill | awk '$3 ~ "^/" { print $3 }' \
        | grep -vE '/(libc|libm|libdl|libpthread|librt)\.so' \
        | xargs cp --dereference --parents --target-directory=/libraries

FROM ${BASE_IMAGE}
COPY scripts/packages.txt /packages.txt
RUN apt-get update \
    && apt-get install -y --no-install-recommends $(awk '$1 == "run" { print $2 }' /packages.txt) \
    && rm -rf /var/lib/apt/lists/* /packages.txt
COPY --from=build /libraries/ /
COPY --from=build /docmill /usr/local/bin/docmill
# No name and no home: the process writes nowhere but to the temporary folder.
USER 10001:10001
WORKDIR /tmp
# Probes come from outside the container.
ENV DOCMILL__WORKER__ADDRESS=0.0.0.0:8080 \
    OMP_THREAD_LIMIT=1
EXPOSE 8080
# Starts the drain; the platform has to grant worker.drain and a little more, see
# docs/operations.md.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["docmill", "healthcheck"]
ENTRYPOINT ["docmill"]
CMD ["worker"]
