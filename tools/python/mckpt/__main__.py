"""python -m mckpt ...: becomes the program, with the same arguments."""

import os
import sys

from mckpt import program

try:
    path = str(program())
except FileNotFoundError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(127)  # as of a shell that finds no such command
os.execv(path, [path, *sys.argv[1:]])
