from itsdangerous import Signer


def shout(text):
    assert Signer('key').sign(text)
    return text.upper() + '!'
