"""What goes wrong with the place of the datasets, as the product's errors."""

import contextlib
import errno
import re
from collections.abc import Iterator
from typing import Literal

import pyarrow as pa

from autoinstall.datasets.location import Location
from autoinstall.errors import AutoinstallError, DiskFull, StorageFailed, UnusableDirectory

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_AWS = re.compile(r"AWS Error (\w+(?: \(HTTP status \d+\))?) during (\w+) operation: (.*)", re.DOTALL)
_REFUSED = re.compile(r"ACCESS_DENIED|ACCESS_KEY|SIGNATURE|TOKEN|AUTHENTICATION|CREDENTIALS|EXPIRED")


@contextlib.contextmanager
def storage_errors(location: Location, doing: Literal["read", "written"]) -> Iterator[None]:
    """Every failure inside that is the place's, as one of the product's errors.

    Raises:
        DiskFull: there is no room.
        UnusableDirectory: there is no such bucket, or it refuses the credentials.
        StorageFailed: anything else.
        FileNotFoundError: a file that is to be read is gone; that may mean that another has taken its place.
    """
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if doing == "read" and isinstance(error, FileNotFoundError):
            raise
        raise storage_error(location, error, doing) from error


def storage_error(location: Location, error: Exception, doing: Literal["read", "written"]) -> AutoinstallError:
    """The product's error for one of the system's or of pyarrow's."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return DiskFull(
            f"No disk space is left for the datasets below {location}.",
            hint="Free some, for instance with `autoinstall prune`, and run it again.",
        )
    if aws := _AWS.search(str(error)):
        return _of_bucket(location, *aws.groups(), doing=doing)
    reason = getattr(error, "strerror", None) or str(error)
    if doing == "read":
        hint = "Move files that the product did not write out of it."
    else:
        hint = "Run it again once it can be written; rows are never doubled."
    return StorageFailed(f"The datasets below {location} cannot be {doing}: {reason}.", hint=hint)


def _of_bucket(location: Location, code: str, operation: str, detail: str, *, doing: str) -> AutoinstallError:
    if code == "NO_SUCH_BUCKET":
        return no_bucket(location)
    if _REFUSED.search(code):
        return UnusableDirectory(
            f"The storage refuses its credentials for {location} ({code.lower()} during {operation}).",
            hint="Set AUTOINSTALL_STORAGE__ACCESS_KEY and …__SECRET_KEY, or the AWS_* variables, to a key that may "
            "list, read, write and delete there.",
        )
    if code == "NETWORK_CONNECTION":
        reason = re.sub(r"^curlCode: \d+, |; Details:.*", "", detail).strip()
        return StorageFailed(
            f"The storage of {location} does not answer: {reason}.",
            hint="See that AUTOINSTALL_STORAGE__ENDPOINT (or AWS_ENDPOINT_URL) is its address, and that it runs.",
        )
    detail = re.sub(r"\s*\(Request ID.*", "", detail).strip().rstrip(".")
    return StorageFailed(
        f"The datasets below {location} cannot be {doing}: {code.lower()} during {operation}: {detail}."
    )


def no_bucket(location: Location) -> UnusableDirectory:
    """The error for a bucket that is not there."""
    bucket = location.bucket_path.partition("/")[0]
    return UnusableDirectory(
        f"There is no bucket {bucket!r} where {location} should be.",
        hint="Create it first, or see that AUTOINSTALL_STORAGE__ENDPOINT is the right storage.",
    )
