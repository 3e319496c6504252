"""`python -m autoscaler` is the `tokenscaler` command."""

from autoscaler.cli import main

main()
