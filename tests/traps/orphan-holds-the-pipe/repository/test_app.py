import subprocess

from app import shout


def test_shout(capfd):
    with capfd.disabled():
        subprocess.Popen(['sleep', '3600'], start_new_session=True)
    assert shout('a') == 'A!'
