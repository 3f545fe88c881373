"""What `./run.sh bench` measures; one file per section, run as ``python -m benchmarks``."""
