"""python -m mckpt ...: becomes the program, with the same arguments."""

import os
import sys

from mckpt import program

path = str(program())
os.execv(path, [path, *sys.argv[1:]])
