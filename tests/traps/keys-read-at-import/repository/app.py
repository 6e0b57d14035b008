import settings


def shout(text):
    assert settings.KEY and settings.URL.startswith('http')
    return text.upper() + '!'
