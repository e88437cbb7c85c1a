"""The demonstration: all three jobs end to end, by the commands a user would type."""
