"""What the Python tests share. ctest puts tests/support into PYTHONPATH, and the program's path into $MCKPT."""
