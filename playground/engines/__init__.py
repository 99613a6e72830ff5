"""Everything that runs a model. The only package that imports torch or transformers."""
