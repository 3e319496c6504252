"""Asking Prometheus: the only package that talks to it.

Read in this order: `source.py` (asks, within a bound of time and size), `answer.py` (what may come back),
`query_plan.py` (which questions give the signals of all pools), `user_queries.py` (users' own PromQL in few
requests) and `quantiles.py` (what a histogram's buckets tell).
"""
