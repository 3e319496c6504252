"""What each command may be given, and what is said of it in --help: a file each, registered in `autoscaler/cli.py`.

What a command does stands in `autoscaler/commands/`, and is loaded when it is called: --help needs none of it.
"""
