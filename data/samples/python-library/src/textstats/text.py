from dataclasses import dataclass
from functools import cached_property

import regex

_WORD = regex.compile(r"\p{L}[\p{L}'’-]*")
_SENTENCE = regex.compile(r"[.!?]+(?=\s|$)")
_VOWELS = regex.compile(r"[aeiouy]+", regex.IGNORECASE)


def count_syllables(word: str) -> int:
    """Syllables of an English word; at least 1."""
    groups = len(_VOWELS.findall(word))
    if word.lower().endswith("e") and not word.lower().endswith(("le", "ee")) and groups > 1:
        groups -= 1
    return max(groups, 1)


@dataclass(frozen=True)
class Text:
    content: str

    @cached_property
    def words(self) -> list:
        return _WORD.findall(self.content)

    @property
    def sentences(self) -> int:
        return max(len(_SENTENCE.findall(self.content)), 1 if self.words else 0)

    @property
    def syllables(self) -> int:
        return sum(count_syllables(word) for word in self.words)

    @property
    def reading_ease(self) -> float:
        """Flesch's reading ease: about 100 is very easy, below 30 very hard."""
        if not self.words:
            raise ValueError("a text without words has no reading ease")
        per_sentence = len(self.words) / self.sentences
        per_word = self.syllables / len(self.words)
        return 206.835 - 1.015 * per_sentence - 84.6 * per_word
