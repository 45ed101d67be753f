"""Run a plan of notebooks: `python -m lib.plan runs/sample.yaml`."""
