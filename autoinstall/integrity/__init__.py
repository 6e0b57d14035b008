"""Whether an attempt set the environment up, or made its targets look as if it had.

Run in a fresh container of the committed image before any target runs in it. Tracked files are read by way of the
engine (`Sandbox.read_tree`) and held against the pristine checkout on the host. Beside them only what the engine lists
as changed since the initial state (`Sandbox.changed_paths`) is looked at; programs inside the container are only asked
where to look.
"""

from autoinstall.integrity.changes import noteworthy
from autoinstall.integrity.check import check_integrity
from autoinstall.integrity.report import IntegrityReport, Violation, ViolationKind

__all__ = ["IntegrityReport", "Violation", "ViolationKind", "check_integrity", "noteworthy"]
