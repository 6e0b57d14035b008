"""Which addresses are the public internet's. Everything else may be the host's own network, and is refused."""

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from autoinstall.errors import SearchFailed

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], tuple[Address, ...]]

_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Whether the address is one of the public internet's, and so is every IPv4 address that it stands for.

    False for private, shared (carrier-grade NAT), loopback, link-local (and with it the clouds' metadata services),
    multicast, unspecified and reserved ones.
    """
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        tunnelled = (address.sixtofour, *(address.teredo or ()))
        if not all(is_public(inner) for inner in tunnelled if inner is not None):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def resolve(host: str, port: int) -> tuple[Address, ...]:
    """All addresses of a name, or of a literal in any of the spellings that the system's resolver takes.

    Raises:
        SearchFailed: the name is unknown, or no name at all.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SearchFailed(f"The host {host} is not found.", hint="Check the address.") from error
    return tuple(dict.fromkeys(ip_address(entry[4][0]) for entry in found))


def checked_address(host: str, port: int, resolver: Resolver = resolve) -> Address:
    """The address to connect to; connect to it and to no other, since a second look-up may have another answer.

    Raises:
        SearchFailed: one of the host's addresses is not public, or it has none.
    """
    addresses = resolver(host, port)
    if not addresses or not all(map(is_public, addresses)):
        raise SearchFailed(
            f"The host {host} is not on the public internet.", hint="Only public pages can be fetched by this tool."
        )
    # IPv4 first: it is had in more places, and there is no second try.
    return min(addresses, key=lambda address: address.version)
