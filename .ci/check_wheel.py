"""Check what a wheel holds, and that what it installed can release a frame."""

import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pandas as pd

import skpuffer

names = ZipFile(sys.argv[1]).namelist()
assert "skpuffer/py.typed" in names, names
assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names), names
# The package and its metadata: no tests, pages or examples.
assert all(name.startswith(("skpuffer/", "skpuffer-")) for name in names), names
site = Path(sysconfig.get_path("purelib"))
assert Path(skpuffer.__file__).is_relative_to(site), skpuffer.__file__

frame = pd.DataFrame({"age": range(60), "group": ["a", "b"] * 30})
noise = skpuffer.RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="group")
released = noise.fit_transform(frame)
assert list(released.columns) == ["age"], released
assert len(released) == len(frame), released
print(f"{Path(sys.argv[1]).name}: {len(names)} files, version {skpuffer.__version__}")
print(noise.guarantee_)
