"""Names of the files of a dataset. None begins with a dot or an underscore, which readers take for hidden."""

import hashlib
import re

EMPTY_NAME = "0000-empty.parquet"
"""A typed file without rows in each dataset, so that a directory opens before its first row. Sorted first, it also
gives readers that take the first file's schema the newest one."""

RUN = "run-"
COMPACTED = "compact-"


def file_name(run_id: str) -> str:
    """Name of a run's file in every dataset: the run's id where that is a plain name, else a digest of it."""
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", run_id)
    return f"{RUN}{run_id if plain else hashlib.sha256(run_id.encode()).hexdigest()[:40]}.parquet"
