"""Neighbours out of near-duplicate files of millions of rows, in both directions."""
