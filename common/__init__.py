"""The shared core of farview: attention, training, bundles, reports and the command line."""
