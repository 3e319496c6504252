"""The only place that talks to Prometheus: the wrapped client and the query plan."""
