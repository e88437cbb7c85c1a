"""What is wrong or odd with a file of series, before any training."""
