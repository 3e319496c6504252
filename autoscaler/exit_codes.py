"""What every command's exit code means."""

FINE = 0
NOT_RIGHT = 1  # what was checked is not right
WRONG_USAGE = 2  # wrong usage or input: nothing was checked
NOTHING_THERE = 3  # what was to be checked is not there
