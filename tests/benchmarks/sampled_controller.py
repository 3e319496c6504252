"""The controller with a sampler beside it: which named step is the tick in, 200 times a second?

Run as `python -m tests.benchmarks.sampled_controller SAMPLES.json run ...`; everything after the file is for
`tokenscaler`. It samples while the file exists (sampling costs CPU too), and writes it anew every second.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from autoscaler.cli import main

INTERVAL_SECONDS = 0.005

# The innermost of these functions on the tick's stack names the step.
STEPS = {
    "scalers": "accept the specs",
    "observe_workload": "observe workloads",
    "ask": "wait for Prometheus",
    "observe_metrics": "observe metrics",
    "recall": "recall histories",
    "decide": "recommend and constrain",
    "_actuate": "actuate",
    "report": "report",
    "retain": "remember",
    "tick": "the rest of the tick",
}


def _step_of(frame: FrameType | None) -> str | None:
    while frame is not None:
        step = STEPS.get(frame.f_code.co_name)
        if (step is not None and "autoscaler" in frame.f_code.co_filename) or step == "recommend and constrain":
            return step
        frame = frame.f_back
    return None


def _sample(path: Path) -> None:
    counts: Counter[str] = Counter()
    written = time.monotonic()
    own = threading.get_ident()
    while True:
        if not path.exists():
            time.sleep(1)
            continue
        time.sleep(INTERVAL_SECONDS)
        for thread, frame in sys._current_frames().items():
            step = _step_of(frame) if thread != own else None
            if step is not None:
                counts[step] += 1
        if time.monotonic() - written > 1:
            path.write_text(json.dumps(counts))
            written = time.monotonic()


if __name__ == "__main__":
    samples = Path(sys.argv.pop(1))
    threading.Thread(target=_sample, args=(samples,), daemon=True).start()
    main()
