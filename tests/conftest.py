"""Settings of all tests."""

import os

# The models of the tests are tiny: more threads only wait for each other, for minutes where the cores are shared.
# Set before torch is imported, and inherited by the commands that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
