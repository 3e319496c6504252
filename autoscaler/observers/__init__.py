"""Ports and adapters for what comes in: workloads and metrics."""
