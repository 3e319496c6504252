"""The plant: a simulated fleet that stands in for cluster and Prometheus, never for the decision.

Read in this order: `serving_replica.py` (what one replica does with its requests), `replica_profile.py` (how fast it
is), `replica_set.py` (pods), `simulated_pool.py` (gateway, routing, scrapes), `simulated_metrics.py` (what of it the
policy sees), `simulated_fleet.py` (the controller's ports), `trace.py` and `arrivals.py` (the traffic).

How far to trust it: mean time per token and throughput follow published measurements within a few percent, mean time
to first token below saturation within about 20 %. Its p99 lacks what real systems add (warm-up, network), so it may be
half of theirs. How often requests are preempted, and what queues do beyond saturation, no public measurement confirms.
"""
