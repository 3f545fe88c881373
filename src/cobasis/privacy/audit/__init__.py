"""What an upload gives away, measured at the party before it leaves: arrays in, a report out."""
