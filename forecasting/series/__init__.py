"""Series in: files people really have, read without guessing and without changing anything silently."""
