# Honest GPU Exporter. Targets: slim (the default: reads the driver) and dcgm (adds DCGM's library and NVIDIA's bindings
# for Python, from NVIDIA's own packages).
#
#   docker build --target slim -t honest-gpu-exporter:0.1.0 .
#   docker build --target dcgm -t honest-gpu-exporter:0.1.0-dcgm --build-arg DCGM_VERSION=1:4.5.2-1 .
#
# To pin the base:  --build-arg BASE=debian:bookworm-slim@sha256:...
# The same layers:  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct), with BuildKit's rewrite-timestamp=true
#                   or buildah's --timestamp
ARG BASE=debian:bookworm-slim

# --- what every image needs to run
FROM ${BASE} AS base
# Debian's point release decides on python3's patches: pinning its version here would only break on security updates.
# hadolint ignore=DL3008
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/* /var/log/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/*

# --- the exporter in an environment of its own, from the lock files
FROM base AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements.lock requirements-test.lock packaging/build.lock ./
# grpcio and what it needs read the kubelet's socket; their versions are those that are tested.
RUN python3 -m venv /build \
    && /build/bin/pip install --no-deps --only-binary=:all: -r build.lock \
    && python3 -m venv --without-pip /opt/honest-gpu-exporter \
    && /build/bin/pip --python /opt/honest-gpu-exporter/bin/python install --no-compile --no-deps --only-binary=:all: \
        -r requirements.lock \
    && /build/bin/pip --python /opt/honest-gpu-exporter/bin/python install --no-compile --no-deps --only-binary=:all: \
        -c requirements-test.lock grpcio protobuf typing_extensions
COPY pyproject.toml README.md LICENSE ./
COPY exporter ./exporter
# From the folder of wheels, so that the record of where it came from does not differ by build. Byte code by content,
# not by date: two builds give the same files, and a read-only root loses no time.
# hadolint ignore=DL3013
RUN /build/bin/pip wheel -q --no-deps --no-build-isolation -w /wheels . \
    && /build/bin/pip --python /opt/honest-gpu-exporter/bin/python install --no-compile --no-index --no-deps -f /wheels \
        honest-gpu-exporter \
    && PYTHONHASHSEED=0 /opt/honest-gpu-exporter/bin/python -m compileall -q -f \
        --invalidation-mode unchecked-hash /opt/honest-gpu-exporter/lib
COPY packaging/image/healthcheck.py /opt/honest-gpu-exporter/healthcheck.py

# --- what both targets are
FROM base AS runtime
ARG VERSION=0.2.0.dev0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="honest-gpu-exporter" \
      org.opencontainers.image.description="What the GPU driver claims, next to what the silicon did, for Prometheus" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/honest-gpu-exporter /opt/honest-gpu-exporter
# For a container runtime that mounts the driver: all GPUs, and only the libraries that read them.
ENV PATH=/opt/honest-gpu-exporter/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=utility
USER 65534:65534
WORKDIR /
EXPOSE 9836
# Another port, TLS, or a password: HEALTHCHECK_URL=https://127.0.0.1:9836/-/healthy
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s \
    CMD ["/opt/honest-gpu-exporter/bin/python", "/opt/honest-gpu-exporter/healthcheck.py"]
ENTRYPOINT ["/opt/honest-gpu-exporter/bin/honest-gpu-exporter"]

# --- NVIDIA's signing key, checked against the sum that their package index states
FROM base AS nvidia-key
ARG NVIDIA_REPOSITORY=https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404
ARG NVIDIA_KEYRING=cuda-keyring_1.1-1_all.deb
ARG NVIDIA_KEYRING_SHA256=d2a6b11c096396d868758b86dab1823b25e14d70333f1dfa74da5ddaf6a06dba
# hadolint ignore=DL3008
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates \
    && /usr/lib/apt/apt-helper download-file "${NVIDIA_REPOSITORY}/x86_64/${NVIDIA_KEYRING}" /tmp/keyring.deb \
        "SHA256:${NVIDIA_KEYRING_SHA256}" \
    && dpkg-deb -x /tmp/keyring.deb /keyring

# --- dcgm: the library to talk to a hostengine, or to be one (embedded), and NVIDIA's bindings for Python. Tested with
# packages that stand in for NVIDIA's (tests/packaging/nvidia_packages.py); with NVIDIA's own it was not built yet.
FROM runtime AS dcgm
ARG NVIDIA_REPOSITORY=https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404
# The same release as the hostengine that it talks to, as far as possible.
ARG DCGM_VERSION=1:4.5.2-1
USER 0:0
COPY --from=nvidia-key /keyring/usr/share/keyrings/ /usr/share/keyrings/
COPY --from=nvidia-key /etc/ssl/certs/ca-certificates.crt /tmp/ca-certificates.crt
# -proprietary has the profiling of GPUs before Hopper. NVIDIA calls arm64 servers sbsa.
RUN case "$(dpkg --print-architecture)" in arm64) arch=sbsa ;; *) arch=x86_64 ;; esac \
    && printf 'deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] %s/%s/ /\n' \
        "${NVIDIA_REPOSITORY}" "${arch}" > /etc/apt/sources.list.d/nvidia.list \
    && apt-get -o Acquire::https::CAInfo=/tmp/ca-certificates.crt update \
    && DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::https::CAInfo=/tmp/ca-certificates.crt \
        install -y --no-install-recommends \
        "datacenter-gpu-manager-4-core=${DCGM_VERSION}" "datacenter-gpu-manager-4-proprietary=${DCGM_VERSION}" \
    && rm -rf /tmp/* /etc/apt/sources.list.d/nvidia.list /var/lib/apt/lists/* /var/log/* /var/cache/apt/* \
        /var/cache/debconf/*-old /var/cache/ldconfig/*
# An embedded hostengine writes its own log, by default where a read-only root has no place for it.
ENV __DCGM_DBG_FILE=/dev/null
USER 65534:65534

# --- slim: last, hence what `docker build .` makes
FROM runtime AS slim
