"""The papers, one file each: anchors, secret bases, aligners, consensus, certificate."""
