"""notices.toml, checked: what the loop itself says to the model."""

import tomllib
from functools import cache
from importlib.resources import files

from autoinstall.values import NonEmpty, Value


class Notices(Value):
    """Where each is used, and with what words, is said in the file and tested."""

    no_calls: NonEmpty
    filtered: NonEmpty
    cut_off: NonEmpty
    cut_off_call: NonEmpty
    filtered_call: NonEmpty
    after_stop: NonEmpty
    no_time: NonEmpty
    broken: NonEmpty
    interrupted: NonEmpty
    unknown_tool: NonEmpty
    invalid_arguments: NonEmpty
    failed: NonEmpty
    repeated: NonEmpty
    running_out: NonEmpty
    left_out: NonEmpty
    shortened: NonEmpty
    middle_left_out: NonEmpty
    middle_left_out_unkept: NonEmpty


@cache
def notices() -> Notices:
    text = files(__package__).joinpath("notices.toml").read_text(encoding="utf-8")
    return Notices.model_validate(tomllib.loads(text))
