"""From what a tick sees of all pools to what each pool's load will be.

`foresight.py` is the port, `arriving_work.py` what is forecast, `work_bins.py` its bins of five minutes, `cohort.py`
the pools that are forecast together, `fleet_foresight.py` all of it, with the past read in the background.
"""
