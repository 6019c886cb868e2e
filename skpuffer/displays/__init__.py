"""Pictures of guarantees, noise, releases and audits, in scikit-learn's manner.

A class method computes what is shown and draws it; `plot` draws it again, on other axes
or in another way, and computes nothing twice. A display keeps curves and counts, and
the artists of the last drawing in attributes that end in ``_``. Matplotlib is needed to
draw (``pip install 'skpuffer[plot]'``) and is imported then. Displays may import
everything, and nothing imports them.
"""

from skpuffer.displays._audit import AuditDisplay
from skpuffer.displays._coupling import CouplingDisplay
from skpuffer.displays._noise import NoiseDisplay
from skpuffer.displays._profile import PrivacyProfileDisplay
from skpuffer.displays._release import ReleaseDisplay
from skpuffer.displays._tradeoff import TradeoffDisplay

__all__ = [
    "AuditDisplay",
    "CouplingDisplay",
    "NoiseDisplay",
    "PrivacyProfileDisplay",
    "ReleaseDisplay",
    "TradeoffDisplay",
]
