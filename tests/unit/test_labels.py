import os
import subprocess

from autoinstall.sandbox.labels import Process, current_process


def test_a_label_names_its_process() -> None:
    here = current_process()
    assert here.pid == os.getpid()
    assert Process.parse(str(here)) == here
    assert Process.parse("") is None
    assert Process.parse("a/b/c/d/e") is None


def test_only_what_is_certainly_gone_is_dead() -> None:
    here = current_process()
    assert not here.is_dead()
    assert here._replace(started=here.started - 1).is_dead()  # its pid belongs to somebody else now
    assert here._replace(boot="earlier").is_dead()
    assert not here._replace(host="another", boot="earlier").is_dead()
    assert not here._replace(namespace="1", started=1).is_dead()


def test_a_process_that_ended_is_dead() -> None:
    child = subprocess.Popen(["sleep", "0"])
    child.wait()
    assert current_process()._replace(pid=child.pid, started=1).is_dead()
