"""Trains a draft head for a target model: an offline tool, `python -m playground.distill`."""
