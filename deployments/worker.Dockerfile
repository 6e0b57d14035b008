# The image of a team's workers, and of their Prefect server, so that both have the same version of Prefect:
#   docker build -f deployments/worker.Dockerfile -t autoinstall/worker .
# It holds this checkout at /app. BASE is any Debian that has Python 3.11 or later.
ARG BASE=debian:trixie-slim
FROM ${BASE}

ARG APT_MIRROR=
ARG PIP_INDEX_URL=
# Certificate authorities of your own, one PEM file each with the suffix .crt.
COPY deployments/certificates/ /usr/local/share/ca-certificates/
RUN set -eu; \
    if [ -n "$APT_MIRROR" ]; then \
        rm -f /etc/apt/sources.list.d/*; . /etc/os-release; \
        echo "deb $APT_MIRROR $VERSION_CODENAME main" >/etc/apt/sources.list; \
    fi; \
    export DEBIAN_FRONTEND=noninteractive; \
    apt-get update -q; \
    apt-get install -qy --no-install-recommends ca-certificates debian-archive-keyring git mmdebstrap python3 python3-venv; \
    update-ca-certificates; \
    rm -rf /var/lib/apt/lists/*

ENV AUTOINSTALL_HOME=/app \
    PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt \
    DO_NOT_TRACK=1 \
    PREFECT_SERVER_ANALYTICS_ENABLED=false \
    PREFECT_CLIENT_MAX_RETRIES=8
WORKDIR /app
RUN python3 -m venv /opt/venv
# The dependencies first: they change seldom.
COPY pyproject.toml README.md ./
COPY autoinstall/__init__.py autoinstall/
RUN if [ -z "$PIP_INDEX_URL" ]; then unset PIP_INDEX_URL; fi; pip install --no-cache-dir --editable .
COPY . .
RUN printf '#!/opt/venv/bin/python\nfrom cli.main import main\n\nmain()\n' >/opt/venv/bin/autoinstall && chmod +x /opt/venv/bin/autoinstall

CMD ["prefect", "worker", "start", "--pool", "autoinstall", "--type", "process"]
