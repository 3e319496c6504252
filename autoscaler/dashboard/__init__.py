"""A local page that shows what the loop sees and decides.

`recorder.py` turns the reports of a tick into a snapshot (`snapshot.py`), `app.py` serves it as JSON (`wire.py`) beside
the files in `static/`. The page runs as it stands in the file: plain modules, no build step, nothing from elsewhere.
"""
