"""Where datasets are: a directory of this machine, or a prefix of a bucket behind an S3-compatible endpoint."""

import re
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from autoinstall.errors import BadInput


class Location(str):
    """The address in its normal form: an absolute path, or `s3://bucket/prefix`.

    It is a string, so that it goes through parameters, JSON and messages as it is. How the endpoint is reached, and
    with which credentials, is never part of it.

    Raises:
        BadInput: the address is of another kind, or carries what does not belong into it.
    """

    __slots__ = ()

    def __new__(cls, address: "str | Path") -> Self:
        return super().__new__(cls, _normal(str(address)))

    def __truediv__(self, name: str) -> "Location":
        return Location(f"{self}/{name}")

    @property
    def path(self) -> Path | None:
        """The directory; None for what is elsewhere."""
        return None if self.startswith("s3://") else Path(self)

    @property
    def bucket_path(self) -> str:
        """`bucket/prefix`.

        Raises:
            ValueError: this is a directory.
        """
        if self.path is not None:
            raise ValueError(f"{self} is in no bucket")
        return self.removeprefix("s3://")

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.no_info_before_validator_function(_text, core_schema.str_schema())
        return core_schema.no_info_after_validator_function(
            _validated, text, serialization=core_schema.to_string_ser_schema()
        )


def _text(address: Any) -> Any:
    return str(address) if isinstance(address, Path) else address


def _validated(address: str) -> Location:
    try:
        return Location(address)
    except BadInput as error:  # pydantic reports what a validator raises as ValueError alone
        raise ValueError(str(error)) from error


def _normal(address: str) -> str:
    scheme, mark, rest = address.partition("://")
    if not mark:
        if not address.strip():
            raise BadInput("The address of the datasets is empty.", hint=_HINT)
        return str(Path(address).expanduser().absolute())
    if scheme == "file" and rest.startswith("/"):
        return str(Path(rest))
    if scheme != "s3":
        raise BadInput(f"Datasets cannot be kept at {scheme}:// addresses.", hint=_HINT)
    parts = urlsplit(address)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadInput(
            "The address of the datasets has more in it than a bucket and a prefix.",
            hint="Endpoint and credentials are settings: AUTOINSTALL_STORAGE__ENDPOINT, …__ACCESS_KEY, …__SECRET_KEY.",
        )
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", parts.netloc):
        raise BadInput(f"{parts.netloc!r} is no name of a bucket.", hint=_HINT)
    return "s3://" + "/".join([parts.netloc, *filter(None, parts.path.split("/"))])


_HINT = "Give a directory, or s3://BUCKET/PREFIX."
