"""Makes sure that a base image is on the engine: `python deployments/base.py [NAME]`. Its digest goes to stdout."""

import logging
import sys

from autoinstall.errors import AutoinstallError
from autoinstall.sandbox.engine import connect
from autoinstall.sandbox.images import ensure_base
from autoinstall.settings import get_settings


def main() -> int:
    logging.basicConfig(format="base: %(message)s", stream=sys.stderr)
    logging.getLogger("autoinstall").setLevel(logging.INFO)
    settings = get_settings()
    try:
        base = ensure_base(connect(settings), settings, sys.argv[1] if len(sys.argv) > 1 else None)
    except AutoinstallError as error:
        sys.stderr.write(f"base: {error}\n")
        return 4
    sys.stderr.write(f"base: {base.reference}, {base.size_bytes / 2**30:.1f} GiB\n")
    sys.stdout.write(f"{base.digest}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
