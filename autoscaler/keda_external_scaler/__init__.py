"""KEDA's external scaler interface: a ScaledObject follows our counts and signals without the external metrics API.

Reading order: trigger.py (what a ScaledObject asks for), service.py (the four calls), server.py (the port, TLS).
`external_scaler_pb2` is generated from `external_scaler.proto`.
"""
