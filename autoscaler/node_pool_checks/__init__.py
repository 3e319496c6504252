"""Is what an AcceleratorPool rests on as it should be: its NodePools, the pods on them, rights, other writers?

`survey.py` and `account_rights.py` read the cluster, `survey_types.py` says what is kept of it, and each other module
judges one side of it without looking any further. `checks.py` has the table of them.
"""
