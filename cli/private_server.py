"""Prefect's server for one command: `python private_server.py PORT`. It ends with the process that started it."""

import os
import signal
import sys
import threading
import time

import uvicorn
from prefect.server.api.server import create_app

LOOK_SECONDS = 1.0


def main() -> None:
    parent = os.getppid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    # As Prefect's own private server: without the UI and without what plans and watches deployments.
    uvicorn.run(create_app(ephemeral=True), host="127.0.0.1", port=int(sys.argv[1]), log_level="error")


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
