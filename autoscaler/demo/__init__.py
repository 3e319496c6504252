"""The product's main job on a simulated fleet: the controller's own loop, its HTTP side and the page, on any laptop.

Read `world.py` (which pools, which traffic), then `run.py` (the loop); `policies.yaml` is what a user would apply.
"""

from autoscaler.demo.run import run_demo

__all__ = ["run_demo"]
