import sys

from mailer.compose import compose, deliver
from mailer.config import load


def main(arguments):
    config = load()
    if arguments == ["--check"]:
        print(f"configuration ok: {config.sender} by {config.host}:{config.port}")
        return 0
    if len(arguments) != 2:
        print("usage: python -m mailer ADDRESS NAME", file=sys.stderr)
        return 2
    print(deliver(config, compose(config, *arguments)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
