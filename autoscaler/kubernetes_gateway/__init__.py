"""The only place that talks to the API server: raw reads, watches, the lease, patches."""
