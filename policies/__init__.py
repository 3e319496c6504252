"""From signals to one replica count, as pure functions.

Read in this order: `decision.py` (what is decided, in which steps), `decision_input.py` (from what),
`recommenders/` (what the load asks for), `constraints/` (what of it may happen now), `history.py` (what is remembered).
"""
