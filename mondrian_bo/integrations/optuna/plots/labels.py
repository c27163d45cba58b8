"""Labels of plots: short, and different for different things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from os.path import commonprefix
from typing import Any


def shortened(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters; a longer one has "…" for its middle."""
    if len(text) <= longest:
        return text
    n_last = (longest - 1) // 2
    return f"{text[: longest - 1 - n_last]}…{text[len(text) - n_last :]}"


def distinct_labels(values: Iterable[Any], longest: int) -> list[str]:
    """Return labels that tell values apart.

    A long label leaves out the words that all long ones begin with, and its own middle. Labels that
    are still the same show where the texts differ. Those that remain the same have numbers.

    Parameters
    ----------
    values : iterable
        Different values, such as the choices of a parameter.
    longest : int
        Largest number of characters of a label, at least 10.

    Returns
    -------
    list of str
        A label of each value.
    """
    values = list(values)
    texts = [str(value) for value in values]
    # The text of "1" is that of 1.
    counts = Counter(texts)
    texts = [
        repr(value) if counts[text] > 1 else text for value, text in zip(values, texts, strict=True)
    ]
    start = _start_of_words([text for text in texts if len(text) > longest])
    labels = [text if len(text) <= longest else _part(text, start, 0, longest) for text in texts]
    for members in _equal(labels):
        same = [texts[k] for k in members]
        if len(set(same)) == 1:
            continue
        first = len(commonprefix(same))
        last = len(commonprefix([text[first:][::-1] for text in same]))
        for k in members:
            labels[k] = _part(texts[k], first, last, longest)
    taken = set(labels)
    for members in _equal(labels):
        number = 0
        for k in members:
            label = labels[k]
            while labels[k] in taken:
                number += 1
                ending = f" ({number})"
                labels[k] = shortened(label, longest - len(ending)) + ending
            taken.add(labels[k])
    return labels


def _start_of_words(texts: list[str]) -> int:
    """Return the length of the whole words that several texts begin with."""
    if len(texts) < 2:
        return 0
    common = commonprefix(texts)
    return max((k + 1 for k, one in enumerate(common) if not one.isalnum()), default=0)


def _part(text: str, n_first: int, n_last: int, longest: int) -> str:
    """Return a text without its first and last characters, with "…" in their places."""
    middle = text[n_first : len(text) - n_last]
    return shortened(f"{'…' * (n_first > 0)}{middle}{'…' * (n_last > 0)}", longest)


def _equal(labels: list[str]) -> list[list[int]]:
    """Return the positions of each label that occurs more than once."""
    found: dict[str, list[int]] = {}
    for k, label in enumerate(labels):
        found.setdefault(label, []).append(k)
    return [members for members in found.values() if len(members) > 1]
