"""The modules that the Python tests share."""
