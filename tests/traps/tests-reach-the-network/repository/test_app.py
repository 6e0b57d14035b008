import urllib.request

import pytest

from app import shout


@pytest.mark.parametrize('number', range(19))
def test_shout(number):
    assert shout(str(number)) == f'{number}!'


def test_the_service():
    assert urllib.request.urlopen('http://service.invalid/', timeout=5).status == 200
