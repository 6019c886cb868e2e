"""Black-box audits: what samples of a release refute, at a level that holds."""

from skpuffer.audit._running import RunningAudit

__all__ = ["RunningAudit"]
