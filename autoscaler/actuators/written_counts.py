"""Which counts has this process itself written, or may have written?"""

from __future__ import annotations

from autoscaler.observers.workload import ScaleTarget


class WrittenCounts:
    """The newest count sent to each target.

    The API server tells who owns a count only until it is zero for the first time: a Scale object leaves a zero out,
    so the owner's entry goes, and later writes through the scale subresource leave none. Then only this memory can
    tell our own writes from others'.
    """

    def __init__(self) -> None:
        self._counts: dict[str, tuple[str, int]] = {}

    def note(self, target: ScaleTarget, replicas: int) -> None:
        """Remembers a count that was written, or of which it is not known whether it was."""
        self._counts[target.path] = (target.uid, replicas)

    def last(self, target: ScaleTarget) -> int | None:
        """The count last sent to the target; None for one that nothing was sent to since this process started."""
        uid, replicas = self._counts.get(target.path, ("", None))
        return replicas if uid == target.uid else None
