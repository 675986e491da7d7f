"""Models of the newer families with random sizes on random grids: what a rank holds, by the table of the family, is what plain
formulas over whole arrays give for it (mckpt_tests/family_formulas), in Megatron's order where the formulas have it.

    families_by_formula.py [MODELS [FAMILY...]]      so many models of each family, up to three ranks of each
"""

import sys

from mckpt_tests.checks import finish, in_parallel
from mckpt_tests.family_formulas import FAMILIES
from mckpt_tests.formulas import check

MODELS = int(sys.argv[1]) if len(sys.argv) > 1 else 8
NAMES = sys.argv[2:] or FAMILIES

in_parallel(lambda name, number: check(name, FAMILIES[name], number), [(name, number) for name in NAMES for number in range(MODELS)])
finish(40 * MODELS * len(NAMES))
