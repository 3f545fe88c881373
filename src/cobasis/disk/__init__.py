"""Files that survive a crash; the only place that knows about disks."""
