import sys
from decimal import Decimal

from invoicing import Invoice, Ledger, Period

VAT = Decimal("0.19")


def main(month: str) -> None:
    ledger = Ledger.connect()
    for customer, entries in ledger.by_customer(Period.month(month)):
        print(f"{customer:30} {Invoice(customer, entries).total(VAT)}")


if __name__ == "__main__":
    main(sys.argv[1])
