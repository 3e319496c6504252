"""The policies that others publish, one file each, to compare with. `baseline.py` holds the table."""
