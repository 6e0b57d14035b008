"""The rules that keep sandboxes away from the host and private networks."""

from ipaddress import ip_network
from types import SimpleNamespace
from typing import Any

import pytest

from autoinstall.sandbox.egress import Allowed, Egress, Subnet, host_networks, make_rules
from autoinstall.settings import EngineSettings, PassThrough, Settings

SUBNET = Subnet(ip_network("172.20.0.0/16"), ip_network("172.20.0.1"))
SUBNET6 = Subnet(ip_network("fd01::/64"), ip_network("fd01::1"))


def preference(line: str) -> int:
    return int(line.split()[3])


def test_rules_by_preference() -> None:
    allowed = [Allowed(ip_network("10.9.9.9"), 3128), Allowed(ip_network("192.168.7.0/24"))]
    lines = make_rules([SUBNET, SUBNET6], allowed, [ip_network("198.51.100.7")]).v4.splitlines()
    assert [preference(line) for line in lines] == sorted(preference(line) for line in lines)
    assert lines[:2] == [
        "rule add pref 100 to 10.9.9.9/32 ipproto 6 dport 3128 lookup main",
        "rule add pref 100 to 192.168.7.0/24 lookup main",
    ]
    assert "rule add pref 200 to 172.20.0.1/32 ipproto 6 unreachable" in lines
    assert "rule add pref 300 to 172.20.0.0/16 lookup main" in lines
    for blocked in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "198.51.100.7/32"):
        assert f"rule add pref 400 to {blocked} unreachable" in lines
    assert not any(":" in line for line in lines)


def test_rules_for_ipv6_are_apart() -> None:
    lines = make_rules([SUBNET, SUBNET6], [], []).v6.splitlines()
    assert "rule add pref 200 to fd01::1/128 ipproto 58 unreachable" in lines
    assert "rule add pref 300 to fd01::/64 lookup main" in lines
    assert "rule add pref 400 to fc00::/7 unreachable" in lines
    # The kernel finds neighbours by ICMP over link-local addresses.
    assert [line for line in lines if "fe80::/10" in line and "58" in line] == []
    assert not any("172." in line for line in lines)


def test_the_host_s_addresses_are_known_without_loopback() -> None:
    found = host_networks()
    assert found
    assert not any(network.is_loopback for network in found)


def egress(**settings: Any) -> Egress:
    client: Any = SimpleNamespace(api=SimpleNamespace(base_url="http+docker://localhost"))
    return Egress(client, Settings(**settings))


def test_what_the_settings_name_stays_reachable(caplog: pytest.LogCaptureFixture) -> None:
    guard = egress(
        pass_through=PassThrough(
            https_proxy="http://user:secret@10.0.0.9:3128",
            pip_index_url="https://10.0.0.8/simple",
            go_proxy="https://10.0.0.7,direct",
            no_proxy="http://10.0.0.1",
            env={"MAVEN_ARGS": "-Dmirror=http://[fd00::6]:8081/maven"},
        ),
        engine=EngineSettings(allow_hosts=("192.168.1.0/24", "10.0.0.5", "localhost:99", "no-such-host.invalid")),
    )
    found = set(guard._allowed())
    assert found >= {
        Allowed(ip_network("10.0.0.9"), 3128),
        Allowed(ip_network("10.0.0.8"), 443),
        Allowed(ip_network("10.0.0.7"), 443),
        Allowed(ip_network("fd00::6"), 8081),
        Allowed(ip_network("192.168.1.0/24")),
        Allowed(ip_network("10.0.0.5")),
        Allowed(ip_network("127.0.0.1"), 99),
    }
    assert Allowed(ip_network("10.0.0.1"), 80) not in found
    assert "no-such-host.invalid" in caplog.text
    caplog.clear()
    list(guard._allowed())
    assert not caplog.text, "said twice"


def test_runtimes_with_a_network_stack_of_their_own_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    guard = egress(engine=EngineSettings(runtime="runsc"))
    assert not guard.active
    assert not guard.active
    assert caplog.text.count("runsc") == 1
    assert not egress(engine=EngineSettings(block_private=False)).active
    assert egress().active


@pytest.mark.parametrize(("name", "later"), [("Podman Engine", False), ("Engine", True)])
def test_podman_connects_a_container_when_it_is_made(name: str, later: bool) -> None:
    guard = egress()
    guard._api.version = lambda: {"Components": [{"Name": name}]}
    assert guard.connects_later is later
