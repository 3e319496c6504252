"""The plant: a simulated fleet that stands in for cluster and Prometheus, never for the decision."""
