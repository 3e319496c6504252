"""What each command does and prints; its exit code is what it returns (`autoscaler/exit_codes.py`)."""
