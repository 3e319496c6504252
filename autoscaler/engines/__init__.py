"""One file per inference engine: which of its metrics carries which signal. `ENGINES` is the table."""
