"""Sandboxes that are started ahead and removed later: who gets which, and that none is forgotten."""

import threading
from dataclasses import dataclass, field

import pytest

from autoinstall.errors import Cancelled, EngineFailed, ImageUnavailable
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.sandbox.deferred import deferred
from autoinstall.sandbox.pool import Pool
from autoinstall.sandbox.scripted import ScriptedProvider

SPEC = SandboxSpec(image="image", purpose="verify-1", owner="me")


@dataclass(eq=False)
class Box:
    spec: SandboxSpec
    fails: bool = False
    running: bool = True
    begun: threading.Event = field(default_factory=threading.Event)
    closed: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        if self.fails:
            raise EngineFailed("no address left")
        self.begun.set()

    def is_running(self) -> bool:
        return self.running

    def stop(self) -> None:
        self.running = False

    def close(self) -> None:
        self.closed.set()


@dataclass
class World:
    boxes: list[Box] = field(default_factory=list)
    next_fails: bool = False

    def make(self, spec: SandboxSpec) -> Box:
        self.boxes.append(Box(spec, fails=self.next_fails))
        return self.boxes[-1]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def pool(world: World) -> Pool[Box]:
    return Pool(world.make)


def test_what_was_prepared_is_taken_once_and_by_an_equal_spec_only(world: World, pool: Pool[Box]) -> None:
    pool.prepare(SPEC)
    pool.prepare(SPEC)
    assert [box.begun.wait(5) for box in world.boxes] == [True]
    other = pool.take(SPEC.model_copy(update={"network": False}))
    assert other is world.boxes[1]
    assert not other.begun.is_set()
    assert pool.take(SPEC) is world.boxes[0]
    assert pool.take(SPEC) is world.boxes[2]


@pytest.mark.parametrize("why", ["it could not be started", "it has ended since"])
def test_what_cannot_be_used_is_replaced_and_removed(world: World, pool: Pool[Box], why: str) -> None:
    world.next_fails = why == "it could not be started"
    pool.prepare(SPEC)
    world.next_fails = False
    world.boxes[0].running = False
    assert pool.take(SPEC) is world.boxes[1]
    pool.settle()
    assert [box.closed.is_set() for box in world.boxes] == [True, False]


def test_a_retired_sandbox_is_gone_once_the_pool_has_settled(world: World, pool: Pool[Box]) -> None:
    pool.retire(pool.take(SPEC))
    pool.settle()
    assert world.boxes[0].closed.is_set()


def test_what_nobody_took_goes_with_its_owner(world: World, pool: Pool[Box]) -> None:
    mine, theirs = SPEC, SPEC.model_copy(update={"owner": "they"})
    pool.prepare(mine)
    pool.prepare(theirs)
    pool.release("me")
    pool.release("me")
    pool.settle()
    assert [box.closed.is_set() for box in world.boxes] == [True, False]
    assert pool.take(theirs) is world.boxes[1]


def test_shutting_down_closes_all_and_refuses_more(world: World, pool: Pool[Box]) -> None:
    pool.prepare(SPEC)
    pool.take(SPEC.model_copy(update={"purpose": "baseline"}))
    pool.shutdown()
    pool.prepare(SPEC)
    assert [box.closed.is_set() for box in world.boxes] == [True, True]
    with pytest.raises(Cancelled):
        pool.take(SPEC)


def test_a_deferred_sandbox_is_opened_when_it_is_used() -> None:
    provider = ScriptedProvider({"pwd": "/workspace"})
    spec = SandboxSpec(image=provider.ensure_base().digest)
    with deferred(provider, spec):
        pass
    assert provider.opened == []
    with deferred(provider, spec) as sandbox:
        assert [sandbox.run("pwd").output, sandbox.run("pwd").output] == ["/workspace", "/workspace"]
        assert not provider.opened[0].closed
    assert [box.closed for box in provider.opened] == [True]
    absent = SandboxSpec(image="absent")
    with deferred(provider, absent) as sandbox, pytest.raises(ImageUnavailable):
        sandbox.run("pwd")
