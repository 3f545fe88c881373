"""What an upload gives away, measured at the party before it leaves: arrays in, a report out.

``report`` has the whole audit, ``policy`` its bounds, ``attackers`` its figures, ``what_if`` and
``prices`` what other choices would come to.
"""
