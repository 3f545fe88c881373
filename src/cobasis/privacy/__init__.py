"""What a release shows, in numbers: noise with a guarantee, and rows kept inside a ball."""
