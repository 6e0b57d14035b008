from dataclasses import replace

import pytest

from mailer.compose import compose, deliver
from mailer.config import load


@pytest.fixture
def config(tmp_path):
    return replace(load(), outbox=tmp_path / "outbox")


def test_the_configuration_has_a_host_and_a_port(config):
    assert config.host
    assert 0 < config.port < 65536


def test_a_mail_has_sender_receiver_and_text(config):
    message = compose(config, "ada@example.org", "Ada")
    assert message["From"] == config.sender
    assert message["To"] == "ada@example.org"
    assert "Dear Ada" in message.get_content()


def test_what_is_no_address_is_refused(config):
    with pytest.raises(ValueError, match="not an address"):
        compose(config, "ada", "Ada")


def test_mails_are_numbered(config):
    message = compose(config, "ada@example.org", "Ada")
    assert [deliver(config, message).name for _ in range(2)] == ["0001.eml", "0002.eml"]
