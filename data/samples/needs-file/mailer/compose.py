from email.message import EmailMessage
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from mailer.config import Config

_TEMPLATE = Environment(undefined=StrictUndefined).from_string("Dear {{ name }},\n\nwelcome!\n")


def compose(config: Config, address: str, name: str) -> EmailMessage:
    if "@" not in address:
        raise ValueError(f"not an address: {address}")
    message = EmailMessage()
    message["From"] = config.sender
    message["To"] = address
    message["Subject"] = f"Welcome, {name}"
    message.set_content(_TEMPLATE.render(name=name))
    return message


def deliver(config: Config, message: EmailMessage) -> Path:
    config.outbox.mkdir(exist_ok=True)
    path = config.outbox / f"{len(list(config.outbox.iterdir())) + 1:04}.eml"
    path.write_bytes(bytes(message))
    return path
