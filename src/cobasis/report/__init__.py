"""What a round has shown, as numbers side by side and as one self-contained page."""
