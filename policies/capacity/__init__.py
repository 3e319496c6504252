"""What can one replica of a pool do within its latency objectives? Learned from the pool's own samples.

Read in this order: `objectives.py` (what is promised), `step_time.py` (how long an engine step takes), `known_laws.py`
(where an estimate begins), `samples.py` (what has been measured), `fit.py` (the law of this pool), `tail.py` (how far
slow requests are from the mean), `solve.py` (what both mean for the objectives), `change.py` (whether it still holds),
`utilization.py` (how much of it is safe), `learning.py` (all of it, once a tick).
"""
