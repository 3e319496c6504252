"""A program of its own, one on each node: it hears that the node is about to go, and drains instead of dying.

`instance_metadata.py` asks the cloud, `node_departure.py` the Node object, `drain.py` says what is done about it.
"""
