"""How many replicas does the load ask for? One vote per file; `recommender.py` has the table of them."""
