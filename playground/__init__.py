"""Send one prompt to several ways of running a language model and compare them."""

__version__ = "0.1.0"
