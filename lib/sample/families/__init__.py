"""The problem families of the planted world, by branch of mathematics."""

from lib.sample.families import (algebra, calculus, combinatorics, geometry, matrices, number_theory, probability,
                                 sequences, word_problems)
from lib.sample.families.family import Family

BRANCHES: dict[str, tuple[Family, ...]] = {
    module.__name__.rpartition(".")[2]: module.FAMILIES
    for module in (number_theory, combinatorics, algebra, sequences, geometry, probability, calculus, matrices,
                   word_problems)
}
FAMILIES: dict[str, Family] = {family.name: family for branch in BRANCHES.values() for family in branch}
BRANCH_OF: dict[str, str] = {family.name: name for name, branch in BRANCHES.items() for family in branch}
