"""What an upload gives away, measured at the party before it leaves: arrays in, a report out.

Read ``running.py`` first. ``grading.py`` has the policy, ``wording.py`` what people read.
"""

from cobasis.privacy.audit.grading import POLICY, Finding
from cobasis.privacy.audit.report import About, AuditReport, Distance, as_json, travelling
from cobasis.privacy.audit.running import audit
from cobasis.privacy.audit.subject import Facts, Guarantee, Subject, sample_size
from cobasis.privacy.audit.what_if import Effect, Setting, settings_of

__all__ = [
    "POLICY",
    "About",
    "AuditReport",
    "Distance",
    "Effect",
    "Facts",
    "Finding",
    "Guarantee",
    "Setting",
    "Subject",
    "as_json",
    "audit",
    "sample_size",
    "settings_of",
    "travelling",
]
