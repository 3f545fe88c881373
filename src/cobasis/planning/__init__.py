"""What a round costs before it is run: traffic, work and memory. Numbers in, numbers out."""
