"""Algebra: quadratics, polynomials, absolute values, exponents."""

from fractions import Fraction

from lib.sample.families.family import Family


def _squares(s, t):
    return dict(answer=s * s - 2 * t, ss=s * s, tt=2 * t, wrong=s * s, alt=s * s - 4 * t)


def _root_shown(u, v):
    return dict(s=u + v, t=u * v)


def _root(s, t):
    d = s * s - 4 * t
    w = int(d**0.5)
    u = (s + w) // 2
    return dict(answer=u, d=d, w=w, v=s - u, ss=s * s, ft=4 * t, double=s + w, wrong=-u, alt=s - u)


def _remainder(a, b, c, d, k):
    h1 = a
    h2 = h1 * k + b
    h3 = h2 * k + c
    return dict(answer=h3 * k + d, h2=h2, h3=h3, wrong=a + b + c + d, alt=-a * k**3 + b * k**2 - c * k + d, cube=k**3,
                lead=a * k**3)


def _absolute(a, b, c):
    low, high = -((b - a) // c), (a + b) // c
    strict_low, strict_high = -((b - 1 - a) // c), (a + b - 1) // c
    return dict(answer=high - low + 1, low=low, high=high, left=a - b, right=a + b, wrong=high - low,
                alt=strict_high - strict_low + 1, span=high - low)


def _exponent(a, p, q, r):
    return dict(answer=Fraction(r - q, p), rest=r - q, wrong=Fraction(r, p * q), alt=Fraction(r + q, p))


FAMILIES = (
    Family("root_squares", {"s": (5, 90), "t": (2, 400)}, _squares, text=r"""
        ask: Let α and β be the roots of $x^2 - <s>x + <t> = 0$. Find $\alpha^2 + \beta^2$.
        ask: Without solving it, compute the sum of the squares of both zeros of the polynomial x² − <s>x + <t>.
        notation: $p_2(\alpha, \beta) = {?}$ if $e_1 = <s>,\ e_2 = <t>$
        plain: Two numbers, possibly complex, add up to <s> and multiply to <t>; square each and add, what comes out?
        solution: Vieta's formulas read $\alpha + \beta = <s>$ and $\alpha\beta = <t>$. Expanding the square of the sum,
            $\alpha^2 + \beta^2 = (\alpha + \beta)^2 - 2\alpha\beta$. || Numerically this is
            $<s> \cdot <s> - 2 \cdot <t> = <answer>$.
        other: Squaring the sum <s> yields <ss>, and this square consists of both wanted squares together with twice the
            product, where twice the product is <tt>. || Removing it, the two squares are worth <answer>.
        terse: $p_2 = e_1^2 - 2e_2$, $e_1^2 = <ss>$, $2e_2 = <tt>$ || $\Rightarrow p_2 = <answer>$.
        lemma: By Vieta, whatever the zeros of $x^2 - <s>x + <t>$ are, they satisfy $\alpha + \beta = <s>$ and
            $\alpha\beta = <t>$.
        method: Express the symmetric quantity through <s> and <t> alone by completing a binomial square; the radicals
            are superfluous.
        subcase: The square of the sum of roots alone is $<s> \cdot <s> = <ss>$; the mixed term is still contained in it.
        general: Symmetric expressions in the zeros of a quadratic are polynomials in its coefficients; for power sums
            one uses Newton's identities, starting from a binomial square.
        topic: François Viète wrote vowels for unknowns and consonants for givens. Albert Girard later stated how
            coefficients arise from zeros for equations of any degree.
        changed: Let α and β be the roots of $x^2 - <s>x + <t> = 0$. Find $(\alpha - \beta)^2$.
        altered: The squared difference is the discriminant, $<s> \cdot <s> - 4 \cdot <t> = <alt>$.
        error: Because $\alpha^2 + \beta^2 = (\alpha + \beta)^2$, Vieta immediately furnishes $<s> \cdot <s> = <wrong>$.
        """),
    Family("larger_root", {"u": (2, 80), "v": (1, 79)}, _root, shown=_root_shown,
           allowed=lambda s, t: s * s - 4 * t > 0, text=r"""
        ask: What is the larger solution of the quadratic equation $x^2 - <s>x + <t> = 0$?
        ask: A rectangle has half-perimeter <s> metres and area <t> square metres. How long is its longer side in metres?
        notation: $\max\{x \in \mathbb{R} : x(<s> - x) = <t>\}$
        plain: Somebody thinks of two numbers with total <s> and product <t>; tell the bigger one.
        solution: The discriminant is $<s> \cdot <s> - 4 \cdot <t> = <d>$, a perfect square, as
            $<w> \cdot <w> = <d>$. || The quadratic formula with the plus sign gives
            $(<s> + <w>)/2 = <answer>$ for the larger solution.
        other: The difference of both numbers, squared, equals <ss> diminished by <ft>, which is <d>, so the numbers lie
            <w> apart. || Total and difference together are twice the bigger number, and hence it is <answer>.
        terse: $\Delta = <ss> - <ft> = <d> = <w>^2$; || $x_{\max} = \tfrac12 \cdot <double> = <answer>$.
        lemma: The discriminant of $x^2 - <s>x + <t>$ equals $<ss> - <ft> = <d>$ and is the square of <w>.
        method: Complete the square around half of <s>, extract the root of the shifted constant, and take the positive
            branch.
        subcase: One also recognises that $x = <v>$ satisfies the equation with sum <s> and product <t>; this is its
            smaller solution only.
        general: A monic quadratic is settled by its discriminant: the two solutions are symmetric about half the linear
            coefficient, at a distance of half the discriminant's root.
        topic: Clay tablets at Yale pose field-measuring puzzles of second degree. Al-Khwārizmī drew geometric squares,
            six types in all, to avoid negative quantities.
        changed: What is the smaller solution of the quadratic equation $x^2 - <s>x + <t> = 0$?
        altered: Taking the minus sign before the radical, the formula gives $(<s> - <w>)/2 = <alt>$.
        error: The formula begins with minus b, and b is <s> here, so the biggest value available carries a negative
            sign: $x = <wrong>$.
        """),
    Family("polynomial_remainder", {"a": (2, 9), "b": (2, 15), "c": (2, 20), "d": (1, 30), "k": (2, 9)}, _remainder,
           text=r"""
        ask: Find the remainder when $<a>x^3 + <b>x^2 + <c>x + <d>$ is divided by $x - <k>$.
        ask: The cubic f(x) = <a>x³ + <b>x² + <c>x + <d> is divided by the linear polynomial x − <k>; which constant is
            left?
        notation: $<a>X^3 + <b>X^2 + <c>X + <d> \in \mathbb{Z}[X]/(X - <k>)$, image $= {?}$
        plain: A cubic has the coefficients <a>, <b>, <c> and <d>, highest power leading; what value does it take at the
            point <k>?
        solution: By the remainder theorem the constant left is f(<k>). Horner's scheme gives
            $<a> \cdot <k> + <b> = <h2>$ and then $<h2> \cdot <k> + <c> = <h3>$. || The last line of the scheme,
            $<h3> \cdot <k> + <d> = <answer>$, is the remainder.
        other: Start with the leading coefficient, multiply by <k> and add the next coefficient, which makes <h2>; repeat,
            which makes <h3>. || A last multiplication by <k> followed by adding <d> ends at <answer>.
        terse: Horner at $<k>$: $<a> \mid <h2> \mid <h3>$ || $\mid <answer>$, i.e. $f(<k>) = <answer>$.
        lemma: There is a polynomial q with $f(x) = (x - <k>)q(x) + f(<k>)$, whatever the coefficients <a>, <b>, <c>, <d>
            are.
        method: Evaluate the cubic with coefficients <a>, <b>, <c>, <d> at <k> by nested multiplication rather than by
            long division.
        subcase: The cubic term by itself leaves $<a> \cdot <cube> = <lead>$ upon division by $x - <k>$; the lower terms
            are yet to come.
        general: Dividing a polynomial by a linear factor leaves its value at that factor's zero, and nested
            multiplication finds both this value and the quotient.
        topic: William Horner's paper of 1819 rediscovered what Qin Jiushao practised in 1247. Polynomial codes on
            compact discs correct scratches with divisions of that sort.
        changed: Find the remainder when $<a>x^3 + <b>x^2 + <c>x + <d>$ is divided by $x + <k>$.
        altered: Here the zero of the divisor is negative, and evaluating there gives <alt>.
        error: Setting x equal to unity removes the variable, thus $<a> + <b> + <c> + <d> = <wrong>$ is left over.
        """),
    Family("absolute_count", {"a": (1, 60), "b": (10, 140), "c": (2, 9)}, _absolute, text=r"""
        ask: How many integers x satisfy $|<c>x - <a>| \le <b>$?
        ask: Count the whole numbers whose <c>-fold differs from <a> by at most <b>.
        notation: $\#\,\mathbb{Z} \cap [(<a> - <b>)/<c>,\ (<a> + <b>)/<c>]$
        plain: On the number line mark each integer that, multiplied by <c>, lands no farther than <b> from <a>; how many
            marks are made?
        solution: The inequality means $<a> - <b> \le <c>x \le <a> + <b>$, i.e. $<left> \le <c>x \le <right>$. Rounding
            inward, x runs from <low> to <high>. || Both ends included, these are $<high> - (<low>) + 1 = <answer>$
            integers.
        other: The multiples of <c> have to lie between <left> and <right>. The first suitable multiplier is <low>, the
            last is <high>, a span of <span>. || Since a span has one more mark than steps, <answer> integers are marked.
        terse: $\lceil <left>/<c> \rceil = <low>$, $\lfloor <right>/<c> \rfloor = <high>$ || $\Rightarrow \# = <answer>$.
        lemma: The condition is equivalent to the double inequality $<left> \le <c>x \le <right>$, for an absolute value
            bounded by <b> unfolds in that way around <a>.
        method: Unfold the modulus bars into two linear inequalities around <a> with slack <b>, divide by <c>, and round
            inward.
        subcase: The upper bound alone restricts x to $x \le <high>$, as $<c>x \le <right>$; the lower bound is not
            examined here.
        general: An absolute value bounded above unfolds into a pair of linear inequalities; integer solutions are
            counted from the rounded-up left end to the rounded-down right end.
        topic: Weierstrass introduced the vertical bars in 1841. Engineers read tolerances as distances from a nominal
            measure, which is precisely the geometric meaning.
        changed: How many integers x satisfy the strict inequality $|<c>x - <a>| < <b>$?
        altered: Equality being excluded at either end, <alt> integers remain.
        error: From <low> up to <high> one travels $<high> - (<low>) = <wrong>$ units, and this is the number of integers.
        """),
    Family("exponent_equation", {"a": (2, 9), "p": (2, 12), "q": (2, 40), "r": (41, 200)}, _exponent, text=r"""
        ask: Solve $(<a>^{<p>})^x \cdot <a>^{<q>} = <a>^{<r>}$ for x.
        ask: For which exponent x does the product of (<a>^<p>)^x and <a>^<q> equal <a>^<r>?
        notation: $x = \log_{<a>^{<p>}}\bigl(<a>^{<r>} / <a>^{<q>}\bigr)$
        plain: The base is <a>; a block of <p> such factors is repeated an unknown number of times, <q> further factors
            are attached, and <r> factors result. How often is the block repeated?
        solution: Iterated powers multiply exponents and products add them, so the left side is
            $<a>^{<p>x + <q>}$. The exponential function is injective, hence $<p>x = <r> - <q>$ and $<r> - <q> = <rest>$. ||
            Consequently $x = <rest>/<p> = <answer>$.
        other: Counting equal factors on both sides, the repeated blocks must supply what is missing after <q> of the
            <r> factors are provided, and that is <rest>. || With <p> factors in a block, the repetition number becomes
            <answer>.
        terse: $<p>x + <q> = <r>$, $<p>x = <rest>$ || $\Rightarrow x = <answer>$.
        lemma: The equation is equivalent to the linear one $<p>x + <q> = <r>$, since powers of <a> with different
            exponents differ.
        method: Merge everything into a single power of <a> on each side and compare exponents built from <p>, <q> and
            <r>.
        subcase: Dividing both sides by $<a>^{<q>}$ leaves $(<a>^{<p>})^x = <a>^{<rest>}$, because
            $<r> - <q> = <rest>$; the inner exponent is not removed yet.
        general: Exponential equations over a common base become linear after applying the laws of powers: iterated
            exponents multiply, products of powers add exponents.
        topic: Nicolas Chuquet wrote exponents as raised numerals in 1484. Moore's doubling rule and radioactive
            half-lives make such growth laws famous.
        changed: Solve $(<a>^{<p>})^x : <a>^{<q>} = <a>^{<r>}$ for x.
        altered: Division subtracts exponents, wherefore $<p>x = <r> + <q>$ and x becomes <alt>.
        error: All exponents on the left multiply, so $<p> \cdot <q> \cdot x$ must be <r> and then $x = <wrong>$.
        """),
)
