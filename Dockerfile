# The images: operator, agent, and trial (a scripted model and a Postgres, for trials and tests). `make images` builds
# them and prints their sizes. BuildKit's own frontend is enough, hence no syntax line.
#
# BASE_IMAGE is any image with Python 3.11 to 3.13 and its venv module; what is built on it runs on it.
ARG BASE_IMAGE=python:3.13-slim

FROM ${BASE_IMAGE} AS build
# Copies, since a link into a cache leads nowhere in another stage; the interpreter is the base's.
ENV UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 UV_NO_CACHE=1 UV_PYTHON=python3 UV_PYTHON_DOWNLOADS=never
WORKDIR /build
COPY hack/uv.txt hack/images/trusting ./
RUN --mount=type=secret,id=ca python3 -m venv /uv \
    && ./trusting /uv/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement uv.txt
COPY pyproject.toml uv.lock ./

FROM build AS wheel
RUN --mount=type=secret,id=ca UV_PROJECT_ENVIRONMENT=/hatch ./trusting /uv/bin/uv sync --frozen --only-group build
COPY README.md LICENSE ./
COPY contract contract
COPY operator operator
COPY agent_image agent_image
COPY local local
RUN /hatch/bin/hatchling build -t wheel -d /wheel

# Dependencies before the package: they change less often than it does. uv checks each against its hash in the lock.
FROM build AS operator-environment
ENV UV_PROJECT_ENVIRONMENT=/opt/triage
RUN --mount=type=secret,id=ca ./trusting /uv/bin/uv sync --frozen --no-install-project --extra operator
RUN --mount=type=bind,from=wheel,source=/wheel,target=/wheel \
    /uv/bin/uv pip install --python /opt/triage --offline --no-deps /wheel/*.whl
# Half of it: the client's classes for each kind and each API. The operator takes objects as JSON and imports none.
RUN cd /opt/triage/lib/python3*/site-packages/kubernetes \
    && find client/models client/api aio/client/models aio/client/api -type f ! -name '__init__.*' -delete

FROM build AS agent-environment
ENV UV_PROJECT_ENVIRONMENT=/opt/triage
# `agent litellm` for models other than Gemini.
ARG AGENT_EXTRAS=agent
RUN --mount=type=secret,id=ca \
    ./trusting /uv/bin/uv sync --frozen --no-install-project $(printf -- '--extra %s ' ${AGENT_EXTRAS})
RUN --mount=type=bind,from=wheel,source=/wheel,target=/wheel \
    /uv/bin/uv pip install --python /opt/triage --offline --no-deps /wheel/*.whl

FROM build AS trial-environment
ENV UV_PROJECT_ENVIRONMENT=/opt/triage
RUN --mount=type=secret,id=ca ./trusting /uv/bin/uv sync --frozen --no-install-project --extra local
RUN --mount=type=bind,from=wheel,source=/wheel,target=/wheel \
    /uv/bin/uv pip install --python /opt/triage --offline --no-deps /wheel/*.whl

FROM ${BASE_IMAGE} AS runtime
# Some bases leave out the standard library's bytecode. Nobody could write it later, and each start would compile anew.
RUN python3 -c 'import compileall, re, sysconfig; \
    compileall.compile_dir(sysconfig.get_path("stdlib"), quiet=2, rx=re.compile(r"/(site-packages|test|idlelib)/"))' \
    && echo 'triage:x:65532:65532:triage-operator:/tmp:/sbin/nologin' >> /etc/passwd \
    && echo 'triage:x:65532:' >> /etc/group
# /tmp is the only folder that may be writable: the root file system is read-only where the chart runs this.
ENV PATH=/opt/triage/bin:${PATH} HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# By number, so that a kubelet can tell that it is not root.
USER 65532:65532
WORKDIR /
ARG BASE_IMAGE
ARG VERSION=0.0.0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.vendor="triage-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${BASE_IMAGE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"

FROM runtime AS trial
LABEL org.opencontainers.image.title="triage-operator-trial" \
      org.opencontainers.image.description="A scripted model and a Postgres, to try triage-operator with."
COPY --from=trial-environment /opt/triage /opt/triage
COPY hack/images/trial /usr/local/bin/trial
# What Postgres ends at without waiting for its clients.
STOPSIGNAL SIGINT
ENTRYPOINT ["trial"]
CMD ["model"]

FROM runtime AS agent
LABEL org.opencontainers.image.title="triage-agent" \
      org.opencontainers.image.description="Works on one attempt of a TriageRun; has the docs-triage agent in it."
COPY --from=agent-environment /opt/triage /opt/triage
ENTRYPOINT ["triage"]
CMD ["attempt"]

FROM runtime AS operator
LABEL org.opencontainers.image.title="triage-operator" \
      org.opencontainers.image.description="Finishes AI agent runs which lost their pod."
COPY --from=operator-environment /opt/triage /opt/triage
EXPOSE 8080
ENTRYPOINT ["triage-operator"]
CMD ["run"]
