"""Pages that are generated from the types: `python -m autoscaler.reference` (`make reference`) writes them anew."""
