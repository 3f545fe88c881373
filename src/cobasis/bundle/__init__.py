"""Messages as bytes. Nothing that another side sent is trusted, and nothing is ever pickled."""
