from app import shout


def test_shout():
    assert shout("a") == "A!"
