"""Number theory: remainders, divisors, congruences, factorials."""

from math import gcd

from lib.sample.families.family import Family


def is_prime(n: int) -> bool:
    """Whether n is prime, by trial division."""
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def _power(a, n, m):
    q, r = divmod(n, m - 1)
    answer = pow(a, r, m)
    return dict(answer=answer, q=q, r=r, e=m - 1, wrong=a * n % m, alt=-answer % m, half=pow(a, r - 1, m), s=r - 1)


def _lcm(x, y):
    g = gcd(x, y)
    return dict(answer=x * y // g, g=g, u=x // g, v=y // g, w=x // g * (y // g), wrong=x * y, alt=g)


def _divisors(p, a, q, b):
    return dict(answer=(a + 1) * (b + 1), i=a + 1, j=b + 1, wrong=a * b, alt=a * (b + 1))


def _crt(a, m, b, n):
    inverse = pow(m, -1, n)
    k = (b - a) * inverse % n
    return dict(answer=a + m * k, k=k, inverse=inverse, mn=m * n, wrong=(a + b) % (m * n), alt=a + m * k + m * n,
                c=(b - a) % n, t=m * inverse)


def _zeros(n):
    f = [n // 5**i for i in range(1, 5)]
    s = [n // 7**i for i in range(1, 5)]
    return dict(answer=sum(f), f1=f[0], f2=f[1], f3=f[2], f4=f[3], wrong=f[0], alt=sum(s), s1=s[0], s2=s[1], s3=s[2],
                s4=s[3], first=f[0] + f[1], twos=n // 2)


def _inverse(a, p):
    answer = pow(a, -1, p)
    return dict(answer=answer, k=(a * answer - 1) // p, wrong=p - a, alt=p - answer, product=a * answer,
                square=a * a % p)


FAMILIES = (
    Family("power_remainder", {"a": (2, 30), "n": (100, 1500), "m": (11, 97)}, _power,
           allowed=lambda a, n, m: is_prime(m) and a < m and n % (m - 1) > 2 and n >= m, text=r"""
        ask: What remainder does $<a>^{<n>}$ leave on division by <m>?
        ask: Determine the residue of the power <a>^<n> modulo the prime <m>.
        notation: $<a>^{<n>} \bmod <m> = {?}$
        plain: Multiply <n> factors, each equal to <a>, and divide the product by <m>; how much is left over?
        solution: The modulus <m> is prime and does not divide <a>, so Fermat's little theorem gives
            $<a>^{<e>} \equiv 1 \pmod{<m>}$. Dividing the exponent, $<e> \cdot <q> + <r> = <n>$, whence
            $<a>^{<n>} \equiv <a>^{<r>}$. || A few squarings give $<a>^{<r>} \equiv <answer> \pmod{<m>}$, so the
            remainder is <answer>.
        other: Powers of <a> repeat after <e> multiplications once we forget multiples of <m>, because <m> is a prime.
            The <n> factors are <q> complete rounds of <e> and then <r> factors more, and complete rounds contribute
            nothing but a unit. || Carrying out the leftover <r> multiplications, always discarding multiples of <m>,
            one arrives at <answer>.
        terse: $\varphi(<m>) = <e>$; $<n> \equiv <r> \pmod{<e>}$; || $<a>^{<n>} \equiv <a>^{<r>} \equiv <answer>$ in
            $\mathbb{Z}/<m>$.
        lemma: Claim. In $\mathbb{Z}/<m>$ the element <a> satisfies $<a>^{<e>} = 1$, since <m> is prime and $<a>$ is
            not a multiple of it.
        method: Reduce the exponent <n> modulo <e> before touching the base <a>, and only then square repeatedly
            modulo <m>.
        subcase: For the smaller exponent <s> repeated squaring already yields $<a>^{<s>} \equiv <half> \pmod{<m>}$;
            the exponent actually wanted is not treated.
        general: To reduce a huge power modulo a prime not dividing the base, replace the exponent by its residue
            modulo one less than that prime, then square repeatedly; Fermat's little theorem justifies the exchange.
        topic: Pierre de Fermat announced his little theorem in a letter of 1640 to Frénicle de Bessy. Cryptographers
            later built public keys upon fast exponentiation, and clocks remain its favourite illustration.
        changed: What remainder does the negative number $-(<a>^{<n>})$ leave on division by <m>?
        altered: The exponent reduces to <r> by Fermat, and changing the sign turns the residue of the power into
            <alt>.
        error: The power means <n> copies of <a>, hence modulo <m> we may compute $<a> \cdot <n>$ instead, and that
            product leaves <wrong>.
        """),
    Family("common_multiple", {"x": (24, 480), "y": (24, 480)}, _lcm,
           allowed=lambda x, y: gcd(x, y) > 2 and x % y and y % x and x < y, text=r"""
        ask: Two bells start together; one rings every <x> seconds, the other every <y> seconds. After how many
            seconds do they first ring together again?
        ask: Find the least common multiple of <x> and <y>.
        notation: $[<x>, <y>] = \operatorname{lcm}(<x>, <y>) = {?}$
        plain: Which is the smallest positive whole number that both <x> and <y> divide evenly?
        solution: By Euclid's algorithm the greatest common divisor is $(<x>, <y>) = <g>$, and $<g> \cdot <u> = <x>$,
            $<g> \cdot <v> = <y>$ with coprime cofactors. || Therefore the common multiple we look for is
            $<g> \cdot <u> \cdot <v> = <answer>$.
        other: Both numbers contain the factor <g>, and stripped of it they are <u> and <v>, which have no divisor in
            common. Any shared multiple must absorb the factor <g> a single time as well as <u> and <v>. || Multiplying
            these three pieces produces <answer>, and nothing smaller can work.
        terse: $\gcd = <g>$, $<u> \cdot <v> = <w>$; || $\operatorname{lcm} = <g> \cdot <w> = <answer>$.
        lemma: Euclid's algorithm applied to <x> and <y> ends with the greatest common divisor <g>.
        method: Peel the shared factor off <x> and <y> by successive division, then recombine it a single time with
            both cofactors.
        subcase: For the cofactors alone, <u> and <v>, which are coprime, the smallest shared multiple is their
            product $<u> \cdot <v> = <w>$; the factor they lost is still to be restored.
        general: Smallest shared multiples come from greatest shared divisors: the product of two positive integers
            equals their gcd times their lcm, and Euclid's algorithm finds the former quickly.
        topic: Planetary conjunctions, gear wheels and cicadas that hide underground for prime numbers of years all
            lead people toward shared periods. Babylonian astronomers tabulated such coincidences carefully.
        changed: Find the greatest common divisor of <x> and <y>.
        altered: Dividing repeatedly, the last nonzero remainder of Euclid's scheme is <alt>, which divides both.
        error: The bells coincide when both periods have been run through, so we simply multiply and obtain
            $<x> \cdot <y> = <wrong>$ as the earliest moment.
        """),
    Family("divisor_count", {"p": (2, 31), "a": (2, 12), "q": (3, 43), "b": (2, 12)}, _divisors,
           allowed=lambda p, a, q, b: is_prime(p) and is_prime(q) and p < q, text=r"""
        ask: How many positive divisors does the number $<p>^{<a>} \cdot <q>^{<b>}$ have?
        ask: Count all positive integers dividing N, where N is <p>^<a> times <q>^<b>.
        notation: Compute $\tau(<p>^{<a>} <q>^{<b>})$, with $\tau = \sigma_0$.
        plain: A number is built from <a> prime factors <p> and <b> prime factors <q>; by how many positive whole
            numbers can it be divided evenly?
        solution: Every divisor has the form $<p>^i \cdot <q>^j$ with $0 \le i \le <a>$ and $0 \le j \le <b>$ by unique
            factorisation. There are <i> admissible exponents for the first prime, <j> for the second. || The two
            exponents are independent, which makes $<i> \cdot <j> = <answer>$ divisors.
        other: To write down a divisor, decide how many of the <a> factors <p> to keep, which can be done in <i> ways
            counting none at all, and likewise how many factors <q>, in <j> ways. || Since the decisions do not disturb
            each other, the tally of divisors is <answer>.
        terse: $\tau$ multiplicative, $\tau(<p>^{<a>}) = <i>$, $\tau(<q>^{<b>}) = <j>$ || $\Rightarrow \tau(N) =
            <answer>$.
        lemma: Unique factorisation shows that each divisor of $<p>^{<a>} <q>^{<b>}$ is some $<p>^i <q>^j$ whose
            exponents do not exceed <a> and <b>.
        method: Treat the exponents over <p> and over <q> separately, remember that exponent zero is permitted, and
            multiply the numbers of choices.
        subcase: The pure prime power $<p>^{<a>}$ alone has the <i> divisors $1, <p>, \dots, <p>^{<a>}$; the second
            prime is left aside here.
        general: The divisor-counting function is multiplicative, and a prime power with exponent e has e plus one
            divisors, so raise every exponent by one and multiply these numbers.
        topic: Ramanujan studied highly composite numbers, whose abundance of divisors beats every smaller integer.
            Plato recommended 5040 citizens for an ideal city on account of such divisibility.
        changed: How many positive divisors of the number $<p>^{<a>} \cdot <q>^{<b>}$ are multiples of <p>?
        altered: Now the exponent of <p> must be at least one, leaving <a> choices, so that
            $<a> \cdot <j> = <alt>$ divisors qualify.
        error: Each divisor selects one of the <a> and one of the <b> prime factors, hence there are
            $<a> \cdot <b> = <wrong>$ divisors altogether.
        """),
    Family("two_congruences", {"a": (1, 40), "m": (7, 61), "b": (1, 40), "n": (7, 61)}, _crt,
           allowed=lambda a, m, b, n: gcd(m, n) == 1 and a < m and b < n and a != b and m != n, text=r"""
        ask: Find the least nonnegative integer x with $x \equiv <a> \pmod{<m>}$ and $x \equiv <b> \pmod{<n>}$.
        ask: A basket of eggs leaves <a> over when emptied by groups of <m>, and <b> over by groups of <n>. What is
            the smallest possible number of eggs?
        notation: $\{x \in <m>\mathbb{Z} + <a>\} \cap \{x \in <n>\mathbb{Z} + <b>\}$, $\min x \ge 0 = {?}$
        plain: Divided by <m> an unknown number gives remainder <a>, divided by <n> it gives remainder <b>; name the
            smallest such number that is not negative.
        solution: Put $x = <a> + <m>k$. The second congruence becomes $<m>k \equiv <c> \pmod{<n>}$, and as
            $<m> \cdot <inverse> = <t> \equiv 1 \pmod{<n>}$ we get $k \equiv <k>$. || Hence
            $x = <a> + <m> \cdot <k> = <answer>$, unique below <mn>.
        other: List the numbers that leave <a> when split into groups of <m>: each is <m> larger than its predecessor.
            Stepping <k> times from the beginning of that list is exactly what makes the remainder after division by
            <n> equal to <b>. || The list entry reached in this way is <answer>.
        terse: $<m>^{-1} \equiv <inverse> \ (<n>)$, $k \equiv <inverse> \cdot <c> \equiv <k>$ || $\Rightarrow x =
            <answer>$ mod <mn>.
        lemma: The inverse of <m> modulo <n> is <inverse>, because $<m> \cdot <inverse> = <t>$ is one more than a
            multiple of <n>.
        method: Parametrise the first class as <a> plus a multiple of <m>, insert it into the condition modulo <n>,
            and invert the coefficient.
        subcase: Replacing the first condition by divisibility turns the task into $<m>k \equiv <c> \pmod{<n>}$, which
            is solved by $k \equiv <k>$; translating back to x is not done in this note.
        general: The Chinese remainder theorem is constructive: write the unknown through one congruence, substitute it
            in the other, and cancel the coefficient with its modular inverse.
        topic: Sun Zi's classic from the third century already poses a riddle about counting things by threes, fives and
            sevens. Generals reputedly counted soldiers from the leftovers of their ranks.
        changed: Find the least integer x not below the product of both moduli with $x \equiv <a> \pmod{<m>}$
            and $x \equiv <b> \pmod{<n>}$.
        altered: One full period must be added to the smallest solution, which moves it to <alt>.
        error: Adding the two remainders satisfies both conditions at once, so after reduction the basket holds
            $x = <wrong>$.
        """),
    Family("trailing_zeros", {"n": (130, 3100)}, _zeros, text=r"""
        ask: In how many zeros does the decimal expansion of $<n>!$ end?
        ask: Determine the largest k for which 10^k divides the factorial of <n>.
        notation: $v_{10}(<n>!) = {?}$
        plain: All whole numbers from unity up to <n> are multiplied together; how long is the run of noughts closing
            the result?
        solution: A final zero needs a factor 2 and a factor 5, and fives are scarcer. Legendre's formula counts
            $\lfloor <n>/5 \rfloor, \lfloor <n>/25 \rfloor, \lfloor <n>/125 \rfloor, \lfloor <n>/625 \rfloor$, that is
            <f1>, <f2>, <f3> and <f4>. || The factorial therefore ends in $<f1> + <f2> + <f3> + <f4> = <answer>$ zeros.
        other: Among the factors, <f1> can be divided by five, <f2> of them a second time, <f3> a third time and <f4> a
            fourth time, while even factors are plentiful. || Pairing every five with a spare two shows that the product
            closes with <answer> noughts.
        terse: $v_5(<n>!)$: $<f1>, <f2>, <f3>, <f4>$ || $\Rightarrow v_{10} = v_5 = <answer>$.
        lemma: In <n>! the prime 2 occurs at least <twos> times, more often than 5 does, so only the exponent of five
            limits the power of ten.
        method: For the factorial of <n>, floor-divide by 5, 25, 125 and 625 and accumulate the quotients, since the
            twos outnumber the fives.
        subcase: Multiples of 5 and of 25 alone contribute $<f1> + <f2> = <first>$ fives to <n>!; higher powers are
            not looked at yet.
        general: Legendre's formula gives the exponent of a prime inside a factorial as the sum of floor quotients by
            its successive powers; final decimal zeros are governed by the prime five.
        topic: Factorials grow faster than exponentials, as Stirling noticed. Their names in early typography ranged
            from a half box to Kramp's exclamation mark of 1808.
        changed: Determine the largest k for which 7^k divides the factorial of <n>.
        altered: Floor quotients by powers of seven are $<s1> + <s2> + <s3> + <s4> = <alt>$, and no other prime matters.
        error: Each multiple of five yields a single zero and nothing else does, so we divide once and report
            <wrong> zeros at the close.
        """),
    Family("modular_inverse", {"a": (5, 160), "p": (41, 199)}, _inverse,
           allowed=lambda a, p: is_prime(p) and a < p - 1, text=r"""
        ask: Find the integer between 1 and $<p> - 1$ that is inverse to <a> modulo <p>.
        ask: Which x with 0 ≤ x ≤ <p> solves the linear congruence <a>x ≡ 1 (mod <p>)?
        notation: $\overline{<a>}^{\,-1} \in \mathbb{F}_{<p>}$, least positive representative?
        plain: By what smallest positive whole number must <a> be multiplied so that the outcome exceeds a multiple of
            <p> by exactly a single unit?
        solution: As <p> is prime and larger than <a>, an inverse exists. The extended Euclidean algorithm expresses 1
            through both numbers, with the multiple <k> of the modulus: $<p> \cdot <k> + 1 = <product>$. || Since
            $<a> \cdot <answer> = <product>$, the inverse sought equals <answer>.
        other: Working backwards through the divisions of <p> by <a>, a unit is written as a combination of both. In this
            combination <p> enters <k> times, so we want a cofactor that turns <a> into <product>. || That cofactor is
            <answer>, and it is determined uniquely below <p>.
        terse: Bézout: $1 = <a>x - <p> \cdot <k>$, $<product> = 1 + <p> \cdot <k>$ || $\Rightarrow x = <answer>$.
        lemma: Since <p> is prime, <a> has a unique inverse there, and Bézout's identity takes the shape
            $<a>x - <p> \cdot <k> = 1$.
        method: Run the extended Euclidean algorithm on <p> and <a>, keep track of the cofactors, and read the inverse
            off the final line.
        subcase: Squaring first, <a> times itself is congruent to <square> modulo <p>; the inverse of this square, not
            computed here, would have to be multiplied by <a> once more.
        general: Inverses modulo a prime come from the extended Euclidean algorithm: back-substitution writes unity as
            a combination of element and modulus, and the element's cofactor is the inverse.
        topic: Affine ciphers on alphabets rely upon invertible multipliers, and check digits for books do likewise.
            Étienne Bézout published his identity for polynomials in 1779.
        changed: Which x with 0 ≤ x ≤ <p> solves the linear congruence <a>x ≡ −1 (mod <p>)?
        altered: Negating the inverse solves it, and the representative in the wanted interval is <alt>.
        error: The inverse undoes adding <a>, therefore it must be the complement to the modulus, namely
            $<p> - <a> = <wrong>$.
        """),
)
