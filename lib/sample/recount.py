"""The answer of each family once more, by counting, trying out and stepping instead of by formula."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import comb, isqrt


def _power_remainder(a, n, m):
    value = 1
    for _ in range(n):
        value = value * a % m
    return value


def _least_multiple(x, y):
    return next(multiple for multiple in range(x, x * y + 1, x) if multiple % y == 0)


def _divisor_count(p, a, q, b):
    return len({p**i * q**j for i in range(a + 1) for j in range(b + 1)})


def _factorial_fives(n):
    fives = 0
    for factor in range(5, n + 1, 5):
        while factor % 5 == 0:
            factor, fives = factor // 5, fives + 1
    return fives


def _choose(n, k):
    row = [1]
    for _ in range(n):
        row = [1, *(left + right for left, right in zip(row, row[1:], strict=False)), 1]
    return row[k]


def _distributions(n, k, c):
    ways = [1 if coins >= c else 0 for coins in range(n + 1)]
    for _ in range(k - 1):
        for coins in range(1, n + 1):
            ways[coins] += ways[coins - 1]
    return ways[n]


def _walks(columns, rows):
    line = [1] * (columns + 1)
    for _ in range(rows):
        for column in range(1, columns + 1):
            line[column] += line[column - 1]
    return line[columns]


def _matches(n, m, s, t):
    teams = [0] * n + [1] * m
    return sum(s if one == other else t for one, other in combinations(teams, 2))


def _sure_draws(r, b, g, k):
    return 1 + sum(min(stock, k - 1) for stock in (r, b, g))


def _larger_root(s, t):
    return next((x for x in range(s, -1, -1) if x * x - s * x + t == 0), None)


def _recursion(p, q, u):
    for _ in range(4):
        u = p * u + q
    return u


def _entry(a, b, n):
    for _ in range(n - 1):
        a, b = b, b - a
    return a


def _edge_cubes(a, b, c):
    # ways to have 0, 1, 2 or 3 extreme coordinates, one direction after the other
    ways = [1, 0, 0, 0]
    for size in (a, b, c):
        inner = len(range(2, size))
        ways = [inner * ways[k] + (2 * ways[k - 1] if k else 0) for k in range(4)]
    return ways[2]


def _corners(t, s):
    sides = sum([3] * t + [4] * s)
    return 2 + sides // 2 - (t + s)


def _chance(outcomes):
    outcomes = list(outcomes)
    return Fraction(sum(outcomes), len(outcomes))


def _same_colour(r, b):
    return 1 - Fraction(2 * r * b, (r + b) * (r + b - 1))


def _times(left, right):
    a, b, c, d = left
    e, f, g, h = right
    return a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h


def _trace_of_square(a, b, c, d):
    square = _times((a, b, c, d), (a, b, c, d))
    return square[0] + square[3]


def _determinant_cube(a, b, c, d):
    p, q, r, s = _times(_times((a, b, c, d), (a, b, c, d)), (a, b, c, d))
    return p * s - q * r


def _corner_entry(a, n, b, m):
    value = (1, 0, 0, 1)
    for shear, times in ((a, n), (b, m)):
        for _ in range(times):
            value = _times(value, (1, shear, 0, 1))
    return value[1]


def _first_unknown(a, b, c, d, e, f):
    return next((x for x in range(1, 10_000) if (e - a * x) % b == 0 and c * x + d * ((e - a * x) // b) == f), None)


def _dear_tickets(p, q, h, t):
    return next((x for x in range(h + 1) if p * x + q * (h - x) == t), None)


def _meeting_place(u, v, h, d):
    return next((u * time for time in range(h, 10_000) if u * time + v * (time - h) == d), None)


def _hands(h, m):
    apart = abs(Fraction(30 * h) + Fraction(m, 2) - 6 * m) % 360
    return min(apart, 360 - apart)


def _best_plot(l, c):
    return c * max(width * (l - 2 * width) for width in range(l // 2 + 1))


def _slope(a, b, k):
    rise = a * (k + 1) ** 3 + b * (k + 1) - a * (k - 1) ** 3 - b * (k - 1)
    return rise // 2 - a


def _area_under(a3, b2, k):
    # Simpson's rule is exact for quadratics
    middle = a3 * Fraction(k, 2) ** 2 + b2 * Fraction(k, 2)
    return Fraction(k, 6) * (4 * middle + a3 * k * k + b2 * k)


def _quotient_limit(a, b, k, c):
    right, left = (Fraction(a * x * x + b * x - c, x - k) for x in (k + 1, k - 1))
    return (right + left) / 2


ANSWERS: dict[str, Callable[..., int | Fraction | None]] = {
    "power_remainder": _power_remainder,
    "common_multiple": _least_multiple,
    "divisor_count": _divisor_count,
    "two_congruences": lambda a, m, b, n: next(x for x in range(a, m * n, m) if x % n == b),
    "trailing_zeros": _factorial_fives,
    "modular_inverse": lambda a, p: next(x for x in range(1, p) if a * x % p == 1),
    "committee": lambda m, w, i, j: _choose(m, i) * _choose(w, j),
    "bounded_stars": _distributions,
    "paths_through": lambda a, b, c, d: _walks(c, d) * _walks(a - c, b - d),
    "divisible_by_either": lambda n, a, b, l: sum(x % a == 0 or x % b == 0 for x in range(1, n + 1)),
    "league_matches": _matches,
    "sock_drawer": _sure_draws,
    "root_squares": lambda s, t: _trace_of_square(0, 1, -t, s),
    "larger_root": _larger_root,
    "polynomial_remainder": lambda a, b, c, d, k: sum(factor * k**e for e, factor in enumerate((d, c, b, a))),
    "absolute_count": lambda a, b, c: sum(abs(c * x - a) <= b for x in range(-a - b, a + b + 1)),
    "exponent_equation": lambda a, p, q, r: Fraction(r - q, p),
    "arithmetic_sum": lambda a, d, n: sum(range(a, a + n * d, d)),
    "geometric_sum": lambda a, r, n: sum(a * r**j for j in range(n)),
    "telescoping_sum": lambda a, b: sum(Fraction(1, k * (k + 1)) for k in range(a, b + 1)),
    "linear_recursion": _recursion,
    "period_six": _entry,
    "pick_area": lambda i, b: Fraction(2 * i + b - 2, 2),
    "triangle_determinant": lambda a, b, c, d: abs((a + c) * (b + d) - a * b - c * d - 2 * b * c),
    "incircle_radius": lambda a, b: Fraction(a * b, a + b + isqrt(a * a + b * b)),
    "painted_cuboid": _edge_cubes,
    "chord_power": lambda a, b, c: Fraction(a * b, c),
    "euler_solid": _corners,
    "urn_same_colour": _same_colour,
    "two_dice": lambda m, n, s: _chance(i + j == s for i in range(1, m + 1) for j in range(1, n + 1)),
    "at_least_once": lambda a, b, n: sum(comb(n, k) * Fraction(a, b) ** k * Fraction(b - a, b) ** (n - k)
                                         for k in range(1, n + 1)),
    "expected_prize": lambda n, a, b: Fraction(sum(a * k + b * (k == n) for k in range(1, n + 1)), n),
    "which_machine": lambda a, x, b, y: 1 / (1 + Fraction(b * y, a * x)),
    "tangent_slope": _slope,
    "definite_integral": _area_under,
    "fence_at_wall": _best_plot,
    "difference_quotient": _quotient_limit,
    "determinant_cube": _determinant_cube,
    "trace_of_square": _trace_of_square,
    "shear_product": _corner_entry,
    "cramer_rule": _first_unknown,
    "ticket_sale": _dear_tickets,
    "two_pipes": lambda a, b: 1 / (Fraction(1, a) + Fraction(1, b)),
    "meeting_trains": _meeting_place,
    "mixture_percent": lambda x, p, y, q: p + Fraction(y * (q - p), x + y),
    "clock_angle": _hands,
}
