"""One thread of linear algebra for each worker of the tests: more only wait for cores."""

import os

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# The pages have a file of this name, too.
collect_ignore = ["conftest.py"]
