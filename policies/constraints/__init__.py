"""How much of that may happen now? One limit per file, applied in the order of the table in `policies/decision.py`."""
