"""Who somebody is: the keys of a party or of the analyst, made, kept encrypted, and used.

The public half is ``cobasis.protocol.enrolment``; a secret half never leaves this package.
"""
