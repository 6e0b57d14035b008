#!/usr/bin/env bash
# Starts the environment's services, waits until they are ready, and runs the given command in its variables.
if [[ -r /opt/autoinstall/env.sh ]]; then . /opt/autoinstall/env.sh; fi
if [[ -x /opt/autoinstall/start.sh ]]; then /opt/autoinstall/start.sh || exit; fi
exec "$@"
