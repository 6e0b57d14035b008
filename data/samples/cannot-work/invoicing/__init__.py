from northgate_ledger import Ledger, Period

from invoicing.invoice import Invoice

__all__ = ["Invoice", "Ledger", "Period"]
