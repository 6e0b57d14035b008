from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

PATH = Path(__file__).resolve().parent.parent / "config.ini"


@dataclass(frozen=True)
class Config:
    host: str
    port: int
    sender: str
    outbox: Path


def load(path: Path = PATH) -> Config:
    parser = ConfigParser()
    with open(path, encoding="utf-8") as stream:
        parser.read_file(stream)
    return Config(
        host=parser["smtp"]["host"],
        port=parser.getint("smtp", "port"),
        sender=parser["mail"]["sender"],
        outbox=path.parent / parser["mail"]["outbox"],
    )
