"""Numbers in, quantiles of future load out; knows nothing of Kubernetes or of replicas."""
