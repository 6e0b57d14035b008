#!/usr/bin/env bash
# Makes sure that a container engine answers: finds one (as the product does), else installs and starts Docker where it
# may (root on Debian or Ubuntu), else says what to do and exits 1. Doing it again changes nothing.
#
#   PYTHON=.venv/bin/python deployments/engine.sh
#
# ENGINE_LOG           where the daemon's output goes where no systemd runs (default /var/log/autoinstall-dockerd.log)
# ENGINE_ARGS          further arguments of the daemon, where it is started here
# ENGINE_WAIT_SECONDS  how long it may take to answer (default 60)
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-.venv/bin/python}
log=${ENGINE_LOG:-/var/log/autoinstall-dockerd.log}
wait_seconds=${ENGINE_WAIT_SECONDS:-60}
read -ra arguments <<<"${ENGINE_ARGS:-}"

say() { printf 'engine: %s\n' "$*" >&2; }

answers() {
    "$python" - <<'PY'
import sys

from autoinstall.errors import EngineUnavailable
from autoinstall.sandbox.engine import connect
from autoinstall.settings import get_settings

try:
    version = connect(get_settings()).version()
except EngineUnavailable as error:
    sys.exit(str(error))
print("engine:", version.get("Platform", {}).get("Name") or "Docker-compatible", version["Version"], file=sys.stderr)
PY
}

systemd_runs() { [ -d /run/systemd/system ]; }

install_docker() {
    say "installing Docker"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >/dev/null || say "the package lists could not be updated, going on with those here"
    apt-get install -qy --no-install-recommends docker.io iptables ca-certificates </dev/null >/dev/null
}

mount_cgroups() {
    grep -qE ' cgroup2? ' /proc/mounts && return
    say "mounting the control groups"
    command -v cgroupfs-mount >/dev/null || apt-get install -qy --no-install-recommends cgroupfs-mount </dev/null >/dev/null
    cgroupfs-mount
}

# Starts the daemon with the given arguments; 0 when it answers, 1 when it ended or stayed silent.
start_daemon() {
    say "starting dockerd $* (log: $log)"
    setsid dockerd "${arguments[@]}" "$@" </dev/null >"$log" 2>&1 &
    local daemon=$!
    for ((second = 0; second < wait_seconds; second++)); do
        answers 2>/dev/null && return 0
        kill -0 "$daemon" 2>/dev/null || return 1
        sleep 1
    done
    kill "$daemon" 2>/dev/null || true
    return 1
}

start_by_hand() {
    mount_cgroups
    # Left by a daemon that was killed, and its number may be another process's by now.
    if [ -e /var/run/docker.pid ] && [ "$(cat "/proc/$(cat /var/run/docker.pid)/comm" 2>/dev/null)" != dockerd ]; then
        rm -f /var/run/docker.pid
    fi
    start_daemon && return 0
    # nf_tables is refused by some kernels, overlay2 inside some containers and on some file systems.
    if grep -qi 'iptables' "$log" && command -v iptables-legacy >/dev/null; then
        say "trying again with iptables-legacy"
        update-alternatives --set iptables "$(command -v iptables-legacy)" >/dev/null 2>&1 || true
        update-alternatives --set ip6tables "$(command -v ip6tables-legacy)" >/dev/null 2>&1 || true
        start_daemon && return 0
    fi
    if grep -qiE 'overlay|graphdriver|storage.driver' "$log"; then
        if [ -e /dev/fuse ]; then
            command -v fuse-overlayfs >/dev/null || apt-get install -qy --no-install-recommends fuse-overlayfs </dev/null >/dev/null || true
            start_daemon --storage-driver=fuse-overlayfs && return 0
        fi
        start_daemon --storage-driver=vfs && return 0
    fi
    return 1
}

reason=$(answers 2>&1) && { say "${reason#engine: }"; exit 0; }

if [ -n "${DOCKER_HOST:-}${AUTOINSTALL_ENGINE__HOST:-}" ]; then
    say "$reason"
    say "an engine elsewhere was asked for (DOCKER_HOST or AUTOINSTALL_ENGINE__HOST), so none is started here"
    exit 1
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "$reason"
    say "install Docker or Podman and start it, or run this once as root on Debian or Ubuntu: sudo PYTHON=$python $0"
    exit 1
fi

command -v dockerd >/dev/null || install_docker
if systemd_runs; then
    systemctl enable --now docker
    for ((second = 0; second < wait_seconds; second++)); do
        answers 2>/dev/null && break
        sleep 1
    done
else
    # The package's own init script may have started it already, or be at it.
    sleep 2
    answers 2>/dev/null || start_by_hand || true
fi

reason=$(answers 2>&1) && { say "${reason#engine: }"; exit 0; }
say "$reason"
say "the daemon did not start; the end of its log:"
if systemd_runs; then journalctl -u docker -n 20 --no-pager >&2 || true; else tail -n 20 "$log" >&2 || true; fi
exit 1
