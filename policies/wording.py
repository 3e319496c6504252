"""How are numbers and lists written in the sentences that a person reads?"""

from __future__ import annotations

from collections.abc import Iterable


def number(value: float) -> str:
    """A quantity for reading: three or more significant digits, thousands apart (213 000; 7.89; 0.800; 1.00e+20)."""
    size = abs(value)
    if value % 1 and size < 1000:
        return f"{value:.2f}" if size >= 1 else f"{value:.3f}"
    return f"{value:,.0f}".replace(",", " ") if size < 1e15 else f"{value:.2e}"


def filled_in(words: str, terms: Iterable[float | str]) -> str:
    """The words with each {} in turn replaced by a term; numbers are written for reading."""
    return words.format(*(term if isinstance(term, str) else number(term) for term in terms))


def counted(count: int, noun: str) -> str:
    """A count with its noun: 1 replica, 2 replicas."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def duration(seconds: float) -> str:
    """A length of time in whole seconds below two minutes, else in minutes (90 s; 15 min; 2.5 min)."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes == round(minutes) else f"{minutes:.1f} min"


def joined(parts: Iterable[str]) -> str:
    """Parts in one line, empty ones left out, a semicolon between."""
    return "; ".join(part for part in parts if part)
