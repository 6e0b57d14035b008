from decimal import Decimal

from northgate_ledger import Money
from northgate_ledger.testing import entry_factory

from invoicing import Invoice


def test_total_has_vat_and_is_rounded_to_cents():
    invoice = Invoice("Ada", [entry_factory(amount="10.01"), entry_factory(amount="0.02")])
    assert invoice.total(Decimal("0.19")) == Money(Decimal("11.94"), currency="EUR")


def test_currency_is_that_of_the_entries():
    invoice = Invoice("Ada", [entry_factory(amount="1", currency="CHF")])
    assert invoice.total(Decimal(0)).currency == "CHF"
