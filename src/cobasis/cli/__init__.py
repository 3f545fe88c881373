"""The command line: one file per command, which parses, calls the public API, and prints."""
