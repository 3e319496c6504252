"""What would a stock HorizontalPodAutoscaler do? Its own arithmetic and its whole sync, to the bit.

Our decision shares `metric_proposal.py` with it, and it shares our limits (`policies/constraints`). `reconcile.py` is
the whole of it (`metrics.py`, `normalize.py`, `memory.py` are its parts): the baseline a policy is compared with.
"""
