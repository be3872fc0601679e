# docker build -t fairway .                                the CPU program, on Debian 12
# docker build -t fairway-cuda --build-arg BACKEND=cuda \
#   --build-arg BUILD_IMAGE=nvidia/cuda:13.0.0-cudnn-devel-ubuntu24.04 \
#   --build-arg RUN_IMAGE=nvidia/cuda:13.0.0-cudnn-runtime-ubuntu24.04 .
# docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/data" fairway run demo --data shards --out runs/a --seconds 150
# docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/data" --gpus all fairway-cuda run record --data shards --out runs/b --gpus 8
ARG BUILD_IMAGE=debian:12
ARG RUN_IMAGE=debian:12-slim

FROM ${BUILD_IMAGE} AS build
ARG BACKEND=cpu
# all, or one architecture, which is quicker: 90a is Hopper
ARG CARDS=all
ENV DEBIAN_FRONTEND=noninteractive
WORKDIR /source
COPY scripts/setup scripts/setup-cuda scripts/
# python3-pip is for scripts/setup-cuda.
# hadolint ignore=DL3008
RUN apt-get update && scripts/setup build && \
    if [ "$BACKEND" = cuda ]; then apt-get install -y --no-install-recommends python3-pip && scripts/setup-cuda; fi && \
    rm -rf /var/lib/apt/lists/*
COPY . .
# Compilers other than Debian 12's may warn of more.
RUN if [ "$BACKEND" = cuda ]; then preset=cuda; else preset=release; fi && \
    cmake --preset "$preset" -B /build -DBUILD_TESTING=OFF -DFAIRWAY_WARNINGS_AS_ERRORS=OFF -DFAIRWAY_CUDA_ARCHITECTURES="$CARDS" && \
    cmake --build /build --target fairway && \
    cmake --install /build --prefix /installed

FROM ${RUN_IMAGE}
ENV DEBIAN_FRONTEND=noninteractive
# The libraries that the program is linked to (tests/supply compares), libcurl4 for `data fetch`, mpirun for several machines.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends \
      ca-certificates libbrotli1 libcurl4 libfmt9 liblzma5 libopenmpi3 libsentencepiece0 libssl3 libzstd1 openmpi-bin zlib1g && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /installed /usr/local
RUN useradd --uid 10001 --create-home fairway
USER 10001
WORKDIR /data
ENTRYPOINT ["fairway"]
