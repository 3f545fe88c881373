"""What a round will cost before it is run: traffic, work and memory. Numbers in, numbers out."""
