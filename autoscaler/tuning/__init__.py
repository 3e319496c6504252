"""Better parameters for a policy, sought on replays and judged on a part of the load that the search has not seen."""
