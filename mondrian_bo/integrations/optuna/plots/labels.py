"""Labels of plots: short, and different for different things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
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
    labels = [
        text if len(text) <= longest else shortened("…" * (start > 0) + text[start:], longest)
        for text in texts
    ]
    for members in _equal(labels):
        same = [texts[k] for k in members]
        if len(set(same)) == 1:
            continue
        first = _n_common(same)
        last = _n_common([text[first:][::-1] for text in same])
        for k in members:
            labels[k] = _with_difference(texts[k], first, last, longest)
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


def bar_labels(names: Sequence[tuple[str, ...]], longest: int) -> list[list[str]]:
    """Return the lines of the labels of parameters and of pairs.

    Parameters
    ----------
    names : sequence of tuples of one or two str
        Each parameter, or the two of a pair.
    longest : int
        Largest number of characters of a name.

    Returns
    -------
    list of lists of str
        One line, or two for a long pair.
    """
    alone = list(dict.fromkeys(one for name in names for one in name))
    label_of = dict(zip(alone, distinct_labels(alone, longest), strict=True))
    result = []
    for name in names:
        *first, last = (label_of[one] for one in name)
        lines = [*(f"{one} \N{MULTIPLICATION SIGN}" for one in first), last]
        whole = " ".join(lines)
        result.append([whole] if len(whole) <= longest else lines)
    return result


def _start_of_words(texts: list[str]) -> int:
    """Return the length of the whole words that several texts begin with."""
    if len(texts) < 2:
        return 0
    common = texts[0][: _n_common(texts)]
    return max((k + 1 for k, one in enumerate(common) if not one.isalnum()), default=0)


def _n_common(texts: list[str]) -> int:
    """Return the number of characters that texts begin with in common."""
    shared = min(map(len, texts))
    return next((k for k in range(shared) if len({text[k] for text in texts}) > 1), shared)


def _with_difference(text: str, n_first: int, n_last: int, longest: int) -> str:
    """Return a text that differs from others between its first and last characters.

    The difference is shown, and as much of the first and the last characters as there is room for.
    """
    end = len(text) - n_last
    n_around = max(longest - (end - n_first) - 2, 0) // 2
    first, last = text[:n_first], text[end:]
    if n_first > n_around + 1:
        first = f"{first[:n_around]}…"
    if n_last > n_around + 1:
        last = f"…{last[n_last - n_around :]}"
    return shortened((first + text[n_first:end] + last).replace("……", "…"), longest)


def _equal(labels: list[str]) -> list[list[int]]:
    """Return the positions of each label that occurs more than once."""
    found: dict[str, list[int]] = {}
    for k, label in enumerate(labels):
        found.setdefault(label, []).append(k)
    return [members for members in found.values() if len(members) > 1]
