"""What would a stock HorizontalPodAutoscaler do? Its own arithmetic and its whole reconcile, to the bit.

`metric_proposal.py` and `normalize.py` are what our decision shares with it; `memory.py` and `reconcile.py` are the
rest of it, the baseline that a policy is compared with.
"""
