"""Rows of finished runs that could not be written: kept in the cache directory until they can be.

Below `cache/unwritten` is a directory for each run, with the address that its rows belong to and the files as they are
to be put there. It appears by one rename, and goes when all of them are in their places.
"""

import logging
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from autoinstall.datasets.location import Location
from autoinstall.datasets.naming import file_name
from autoinstall.datasets.records import RunRecords
from autoinstall.datasets.schemas import Dataset
from autoinstall.datasets.store import store_of
from autoinstall.datasets.writer import run_files, secrets_of, write_files
from autoinstall.errors import AutoinstallError, StorageFailed
from autoinstall.settings import Settings
from autoinstall.values import Value

_HEAD = "run.json"
_ORDER = (Dataset.GOALS, Dataset.TRAJECTORIES, Dataset.ATTEMPTS, Dataset.REPOSITORIES, Dataset.ENVIRONMENTS)

_logger = logging.getLogger(__name__)


class KeptRun(Value):
    """Whose rows they are, and where they belong."""

    run_id: str
    data: Location


def keep_run_rows(settings: Settings, data: Location, records: RunRecords) -> Path:
    """Keep the rows of a run in the cache directory; again, in place of what was kept of it before.

    Returns:
        Where they are.

    Raises:
        StorageFailed: they cannot be written there either.
    """
    run_id = records.repository.run_id
    place = _root(settings) / file_name(run_id).removesuffix(".parquet")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".", dir=place.parent))
        try:
            for dataset, content in run_files(records, secrets=secrets_of(settings)).items():
                if content is not None:
                    (aside / f"{dataset}.parquet").write_bytes(content)
            (aside / _HEAD).write_text(KeptRun(run_id=run_id, data=data).model_dump_json(), encoding="utf-8")
            shutil.rmtree(place, ignore_errors=True)
            aside.rename(place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise StorageFailed(
            f"The rows of {records.repository.repository} could be written neither below {data} nor to {place}: "
            f"{error.strerror or error}.",
            hint="See that AUTOINSTALL_CACHE is a directory that can be written, with room on its disk.",
        ) from error
    return place


def kept_runs(settings: Settings) -> tuple[KeptRun, ...]:
    """The runs whose rows wait here."""
    return tuple(head for _, head in _kept(settings))


def write_kept_runs(settings: Settings) -> tuple[str, ...]:
    """Write what waits here to where it belongs; the ids of those runs.

    What cannot be written now stays, and the next call tries again.
    """
    written: list[str] = []
    for place, head in _kept(settings):
        files = {dataset: _content(place / f"{dataset}.parquet") for dataset in _ORDER}
        try:
            write_files(store_of(head.data, settings.storage), head.run_id, files, late=True)
        except AutoinstallError as error:
            _logger.warning("The rows of the run %s still wait in %s: %s", head.run_id, place, error)
            continue
        shutil.rmtree(place, ignore_errors=True)
        written.append(head.run_id)
    return tuple(written)


def _kept(settings: Settings) -> Iterator[tuple[Path, KeptRun]]:
    for path in sorted(_root(settings).glob(f"run-*/{_HEAD}")):
        try:
            yield path.parent, KeptRun.model_validate_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:  # pydantic's errors are ValueErrors too
            _logger.warning("%s is left alone: %s", path, error)


def _content(path: Path) -> pa.Buffer | None:
    return pa.py_buffer(path.read_bytes()) if path.exists() else None


def _root(settings: Settings) -> Path:
    return settings.cache / "unwritten"
