"""Ports and adapters for what goes out: exactly one writer of a replica count."""
