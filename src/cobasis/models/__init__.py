"""Model families, what they carry, and how they are trained on aligned rows.

scikit-learn is imported when a model is built, not when this package is.
"""
