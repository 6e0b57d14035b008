from decimal import ROUND_HALF_UP, Decimal

from northgate_ledger import Entry, Money

CENT = Decimal("0.01")


class Invoice:
    def __init__(self, customer: str, entries: "list[Entry]") -> None:
        self.customer = customer
        self.entries = entries

    def total(self, vat: Decimal) -> Money:
        net = sum((entry.amount.value for entry in self.entries), Decimal(0))
        gross = (net * (1 + vat)).quantize(CENT, rounding=ROUND_HALF_UP)
        return Money(gross, currency=self.entries[0].amount.currency)
