"""How long is a duration as Karpenter writes it: 30m, 1h30m, Never?"""

from __future__ import annotations

from autoscaler.api.duration import seconds_of


def duration_seconds(text: str) -> float | None:
    """The seconds; None for Never, and for what is no duration."""
    return None if text == "Never" else seconds_of(text)
