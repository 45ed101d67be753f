"""Three exact retrieval routes, their fusion, and the scorer that orders pairs."""
