"""What an upload gives away, measured at the party before it leaves: arrays in, a report out.

Read ``running.py`` first. ``grading.py`` has the policy, ``wording.py`` what people read.
"""

from cobasis.privacy.audit.checks import audit
from cobasis.privacy.audit.grades import POLICY, Finding
from cobasis.privacy.audit.prices import Offer, Plan, plan
from cobasis.privacy.audit.report import About, AuditReport, Distance, as_json, travelling
from cobasis.privacy.audit.subject import (
    Budget,
    Facts,
    Guarantee,
    Setting,
    Subject,
    sample_size,
    settings_of,
)
from cobasis.privacy.audit.what_if import Effect

__all__ = [
    "POLICY",
    "About",
    "AuditReport",
    "Budget",
    "Distance",
    "Effect",
    "Facts",
    "Finding",
    "Guarantee",
    "Offer",
    "Plan",
    "Setting",
    "Subject",
    "as_json",
    "audit",
    "plan",
    "sample_size",
    "settings_of",
    "travelling",
]
