import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from autoinstall.datasets.location import Location
from autoinstall.errors import BadInput
from autoinstall.settings import Settings
from autoinstall.values import Value


class Holder(Value):
    place: Location


@pytest.mark.parametrize(
    ("address", "normal"),
    [
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket//a/b/", "s3://bucket/a/b"),
        ("/srv//data/", "/srv/data"),
        ("file:///srv/data", "/srv/data"),
        ("data", os.path.join(os.getcwd(), "data")),
        ("~/data", str(Path("~/data").expanduser())),
        (Path("/srv/data"), "/srv/data"),
    ],
)
def test_an_address_has_one_form(address, normal):
    assert Location(address) == normal
    assert Location(Location(address)) == normal
    assert Location(address) / "goals" == f"{normal}/goals"


def test_what_is_no_address_says_what_is():
    for wrong, word in (
        ("", "empty"),
        ("gs://bucket/x", "gs://"),
        ("s3://", "bucket"),
        ("s3://UPPER/x", "bucket"),
        ("s3://key:secret@bucket/x", "more in it"),
        ("s3://bucket/x?region=y", "more in it"),
    ):
        with pytest.raises(BadInput, match=word) as caught:
            Location(wrong)
        assert caught.value.hint
        assert "secret" not in str(caught.value)


def test_it_is_a_plain_string_in_json_and_forms():
    holder = Holder(place="s3://bucket/x/")
    assert holder.model_dump_json() == '{"place":"s3://bucket/x"}'
    assert Holder.model_validate_json(holder.model_dump_json()) == holder
    assert isinstance(holder.place, Location)
    assert Holder.model_json_schema()["properties"]["place"]["type"] == "string"
    assert Holder(place=Path("/srv/x")).place.path == Path("/srv/x")
    with pytest.raises(ValidationError, match="gs://"):
        Holder(place="gs://bucket")


def test_only_a_directory_has_a_path():
    assert Location("s3://bucket/x").path is None
    assert Location("s3://bucket/x").bucket_path == "bucket/x"
    with pytest.raises(ValueError, match="no bucket"):
        _ = Location("/srv").bucket_path


def test_settings_take_both(monkeypatch, tmp_path):
    monkeypatch.setenv("AUTOINSTALL_DATA", "s3://bucket/nights/")
    monkeypatch.setenv("AUTOINSTALL_STORAGE__SECRET_KEY", "do-not-print")
    settings = Settings(_env_file=None)
    assert settings.data == "s3://bucket/nights"
    assert "do-not-print" not in repr(settings)
    assert Settings(data=tmp_path, _env_file=None).data.path == tmp_path
