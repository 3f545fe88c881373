"""One file per table or figure, each with its STUDY."""
