"""Measures over queries, ranks and labels; numpy arrays in, numbers with their n out."""
