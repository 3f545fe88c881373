"""What an upload gives away, measured at the party before it leaves: arrays in, a report out.

``report`` has the whole audit, ``policy`` its bounds, ``attackers`` its figures, ``what_if`` and
``prices`` what other choices would come to.
"""

from cobasis.privacy.audit.policy import Finding
from cobasis.privacy.audit.prices import Offer, Plan, plan
from cobasis.privacy.audit.report import About, AuditReport, as_json, audit, travelling
from cobasis.privacy.audit.subject import (
    Budget,
    Facts,
    Guarantee,
    Setting,
    Subject,
    sample_size,
    settings_of,
)
from cobasis.privacy.audit.what_if import Distance, Effect

__all__ = [
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
