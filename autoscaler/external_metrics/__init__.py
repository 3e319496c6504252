"""The API that a HorizontalPodAutoscaler reads our counts and signals from.

Reading order: values.py (what a request means), app.py (the routes), authentication.py (who may ask), server.py (TLS).
"""
