"""Readability statistics of English text."""

from textstats.text import Text, count_syllables

__all__ = ["Text", "count_syllables"]
__version__ = "1.2.0"
