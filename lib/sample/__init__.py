"""The planted world and the local judge: a sample that the project makes itself."""
