import pytest

from textstats import Text, count_syllables


@pytest.mark.parametrize(
    ("word", "expected"),
    [("cat", 1), ("table", 2), ("reading", 2), ("syllable", 3), ("make", 1), ("rhythm", 1), ("free", 1)],
)
def test_syllables(word, expected):
    assert count_syllables(word) == expected


def test_words_and_sentences():
    text = Text("Don't panic! It's fine. Is it?")
    assert text.words == ["Don't", "panic", "It's", "fine", "Is", "it"]
    assert text.sentences == 3


def test_a_text_without_a_full_stop_is_one_sentence():
    assert Text("no end").sentences == 1


def test_easy_text_scores_higher_than_hard_text():
    easy = Text("The cat sat on the mat.")
    hard = Text("Institutional accountability necessitates comprehensive documentation.")
    assert easy.reading_ease > 90 > 30 > hard.reading_ease


def test_nothing_to_read():
    with pytest.raises(ValueError, match="without words"):
        Text("123").reading_ease  # noqa: B018
