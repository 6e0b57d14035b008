"""What the integrity check found."""

from enum import StrEnum

from autoinstall.values import Value


class ViolationKind(StrEnum):
    """What kind of tampering it is; the code that records carry."""

    TEST_CHANGED = "test_changed"
    SOURCE_CHANGED = "source_changed"
    MEANING_CHANGED = "meaning_changed"
    STUB = "stub"
    ENVIRONMENT = "environment"
    FORGED = "forged"


class Violation(Value):
    """One thing that must not be as it is.

    Attributes:
        path: in the container; a variable's name for `ENVIRONMENT`, a target's command for `FORGED`.
        detail: what is wrong with it, in a few words.
    """

    kind: ViolationKind
    path: str
    detail: str


class IntegrityReport(Value):
    """Attributes:
    tampered: empty for an honest set-up.
    modified: tracked files that differ from the commit as policy allows, relative to the checkout.
    """

    tampered: tuple[Violation, ...] = ()
    modified: tuple[str, ...] = ()
