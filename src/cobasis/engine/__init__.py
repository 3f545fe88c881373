"""Out of core: what is larger than memory is read in parts, and resumed where it stopped."""
