"""Black-box audits: what samples of a release refute, at a level that holds."""

from skpuffer.audit._auditor import KernelRenyiAuditor
from skpuffer.audit._cases import CaseAudit, EstimatorAudit
from skpuffer.audit._estimator import audit_estimator
from skpuffer.audit._running import RunningAudit
from skpuffer.audit._scorer import AuditScorer, make_audit_scorer

__all__ = [
    "AuditScorer",
    "CaseAudit",
    "EstimatorAudit",
    "KernelRenyiAuditor",
    "RunningAudit",
    "audit_estimator",
    "make_audit_scorer",
]
