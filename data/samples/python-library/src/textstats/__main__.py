import argparse
from pathlib import Path

from textstats import Text


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="textstats", description="Readability statistics of a file.")
    parser.add_argument("file", type=Path)
    text = Text(parser.parse_args(arguments).file.read_text(encoding="utf-8"))
    print(f"words      {len(text.words)}")
    print(f"sentences  {text.sentences}")
    print(f"ease       {text.reading_ease:.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
