"""What is an HPA's behavior with other stabilization windows? The rates stay as they are."""

from __future__ import annotations

from policies.constraints.behavior import ScalingBehavior


def with_windows(
    behavior: ScalingBehavior, up_seconds: float | None = None, down_seconds: float | None = None
) -> ScalingBehavior:
    """The behavior with windows of so many seconds; None leaves a direction as it is."""
    up, down = behavior.scale_up, behavior.scale_down
    if up_seconds is not None:
        up = up.model_copy(update={"stabilization_window_seconds": round(up_seconds)})
    if down_seconds is not None:
        down = down.model_copy(update={"stabilization_window_seconds": round(down_seconds)})
    return behavior.model_copy(update={"scale_up": up, "scale_down": down})
