"""The command line: it parses, calls one side's functions, and prints."""
