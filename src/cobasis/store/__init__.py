"""Where uploads rest on the analyst's side: a folder of files, read when they are needed."""
