"""Sequences and sums: arithmetic, geometric, telescoping, recursive, periodic."""

from fractions import Fraction

from lib.sample.families.family import Family


def _arithmetic(a, d, n):
    last = a + (n - 1) * d
    total = n * (a + last) // 2
    return dict(answer=total, last=last, ends=a + last, n1=n - 1, wrong=n * last, alt=last, double=n * (a + last),
                climb=(n - 1) * d)


def _geometric(a, r, n):
    power = r**n
    total = a * (power - 1) // (r - 1)
    return dict(answer=total, power=power, less=power - 1, r1=r - 1, wrong=a * power, alt=a * r ** (n - 1),
                scaled=a * (power - 1), pair=a + a * r)


def _telescope(a, b):
    return dict(answer=Fraction(1, a) - Fraction(1, b + 1), b1=b + 1, a1=a + 1, terms=b - a + 1,
                wrong=Fraction(1, a) - Fraction(1, b), alt=Fraction(1, a))


def _recursion(p, q, u):
    one = p * u + q
    two = p * one + q
    three = p * two + q
    return dict(answer=p * three + q, one=one, two=two, three=three, wrong=p**4 * u + q, alt=p * (p * three + q) + q)


def _periodic(a, b, n):
    cycle = (a, b, b - a, -a, -b, a - b)
    i = (n - 1) % 6
    return dict(answer=cycle[i], c=b - a, e=-a, f=-b, g=a - b, place=i + 1, rounds=(n - 1) // 6,
                wrong=b - a if i != 2 else a, alt=cycle[n % 6])


FAMILIES = (
    Family("arithmetic_sum", {"a": (2, 60), "d": (2, 25), "n": (12, 90)}, _arithmetic, text=r"""
        ask: An arithmetic progression starts with <a> and has common difference <d>. What is the sum of its first <n>
            terms?
        ask: A theatre's front row has <a> seats and each further row has <d> seats more than the row before. How many
            seats do <n> rows offer?
        notation: $S_{<n>} = \sum_{k=0}^{<n>-1} (<a> + <d>k) = {?}$
        plain: A runner covers <a> kilometres in the opening week and each week <d> more than the week before; find her
            total after <n> weeks.
        solution: The last term considered is $<a> + <n1> \cdot <d> = <last>$. Pairing the first with the last, the second
            with the last but one, each pair is worth $<a> + <last> = <ends>$. || Half of the <n> terms being the number
            of pairs, the sum equals $<n> \cdot <ends> / 2 = <answer>$.
        other: Her final week brings <last> kilometres. Written once forwards and once backwards, the weekly figures add
            to <ends> in every column, and there are <n> columns, totalling <double>. || The two copies contain the wanted
            figure twice, so it is <answer>.
        terse: $a_{<n>} = <last>$, $a_1 + a_{<n>} = <ends>$; || $S = \tfrac{<n>}{2} \cdot <ends> \leadsto <answer>$.
        lemma: The final term to be summed is $<a> + <n1> \cdot <d> = <last>$, for the step <d> is taken <n1> times.
        method: Imitate young Gauss: place the progression from <a> in steps of <d> under its own reversal and add the
            columns, of which there are <n>.
        subcase: The increments on their own lift the <n>-th term above the first by $<n1> \cdot <d> = <climb>$; nothing
            is summed at this stage.
        general: The sum of an arithmetic progression is the number of terms multiplied by the average of first and last
            term, as reversing and adding shows.
        topic: Legend tells that Gauss surprised schoolmaster Büttner with a hundred summands. Stacked logs and organ
            pipes illustrate linear growth.
        changed: An arithmetic progression starts with <a> and has common difference <d>. What is its term number <n>?
        altered: No summation is required: after <n1> steps the progression has reached <alt>.
        error: All <n> terms may be replaced by the last, that being <last>, so we get $<n> \cdot <last> = <wrong>$.
        """),
    Family("geometric_sum", {"a": (1, 60), "r": (2, 7), "n": (4, 10)}, _geometric, text=r"""
        ask: Evaluate the geometric series with first term <a>, ratio <r> and <n> terms.
        ask: A chain letter reaches <a> people on day one, and every day <r> times as many new people as the day before.
            How many people got it within <n> days?
        notation: $\sum_{j=0}^{<n>-1} <a> \cdot <r>^j = {?}$
        plain: Grains are laid upon <n> fields: <a> on the initial field, then always <r> times what lies on its
            predecessor; how many grains lie there overall?
        solution: Multiply the series by <r> and subtract the original; everything but the extreme terms cancels, and
            $(<r> - 1)S = <a>(<r>^{<n>} - 1)$, where $<r>^{<n>} = <power>$. || Dividing by $<r1>$, we conclude
            $S = <a> \cdot <less> / <r1> = <answer>$.
        other: Enlarging the whole arrangement by the factor <r> merely shifts it along one field. The shifted copy minus
            the old one amounts to <a> times <less>, which is <scaled>. || This difference is <r1> times the arrangement,
            so the grains number <answer>.
        terse: $<r>^{<n>} - 1 = <less>$; || $S = <a> \cdot \frac{<less>}{<r1>} \to <answer>$.
        lemma: With S denoting the series, $<r>S - S = <a> \cdot <r>^{<n>} - <a>$, since the inner terms cancel pairwise.
        method: Compare the series of <n> terms with its <r>-fold copy; only two extreme terms, both multiples of <a>,
            survive the subtraction.
        subcase: The initial two terms give $<a> + <a> \cdot <r> = <pair>$; the remaining ones up to number <n> are
            ignored.
        general: A finite geometric series is evaluated by multiplying with its ratio and subtracting, so that a
            telescoping difference of first term and term after the last remains.
        topic: Sissa's chessboard request ruined a king's granary according to Ibn Khallikān. Zeno's paradoxes and
            compound interest belong to the same circle.
        changed: In the geometric series with first term <a>, ratio <r> and <n> terms, what is the greatest single term?
        altered: Growth is monotone, hence the concluding term is the greatest and equals <alt>.
        error: A geometric series adds up to its first term times ratio to the power <n>, which is
            $<a> \cdot <power> = <wrong>$.
        """),
    Family("telescoping_sum", {"a": (2, 60), "b": (12, 300)}, _telescope, allowed=lambda a, b: b > a + 5, text=r"""
        ask: Evaluate $\sum_{k=<a>}^{<b>} \frac{1}{k(k+1)}$ as a reduced fraction.
        ask: What is the value of 1/(<a>·(<a>+1)) + … + 1/(<b>·(<b>+1)), where each denominator multiplies two
            consecutive integers?
        notation: $\sum_{<a> \le k \le <b>} (k^2 + k)^{-1} = {?}$
        plain: For each whole number from <a> through <b>, multiply it with its successor and take the reciprocal; add all
            reciprocals.
        solution: Partial fractions give $\frac{1}{k(k+1)} = \frac1k - \frac{1}{k+1}$. Written out from <a> to <b>, every
            inner fraction appears with both signs. || What survives is $\frac{1}{<a>} - \frac{1}{<b1>}$, which reduces to
            <answer>.
        other: Each reciprocal is a difference of neighbouring unit fractions, so that the <terms> summands collapse like
            a spyglass. Only the unit fraction of <a> and, negatively, that of <b1> stay visible. || Their difference,
            brought to lowest terms, reads <answer>.
        terse: $\Delta(-1/k) = 1/(k^2+k)$, bounds $<a>, <b1>$ || $\Rightarrow \Sigma = 1/<a> - 1/<b1> \leadsto <answer>$.
        lemma: The summand with index <a> is $\frac{1}{<a>} - \frac{1}{<a1>}$, and likewise every summand up to <b> splits
            into neighbouring unit fractions.
        method: Decompose the fractions between <a> and <b> by partial fractions and watch consecutive pieces annihilate
            each other.
        subcase: Letting the upper limit <b> go to infinity, the series converges to the unit fraction of <a>; the finite
            tail is not subtracted.
        general: Reciprocals of products of consecutive integers split into differences of unit fractions, hence sums over
            a range collapse to boundary contributions.
        topic: Mengoli summed reciprocals of triangular figures around 1650. Leibniz learned similar tricks when Huygens
            tested him in Paris.
        changed: Evaluate the infinite series $\sum_{k \ge <a>} \frac{1}{k(k+1)}$ (the bound <b> is dropped).
        altered: All later pieces cancel in the limit, leaving the single fraction <alt>.
        error: The chain ends with the unit fraction belonging to the upper bound itself, so one gets
            $\frac{1}{<a>} - \frac{1}{<b>}$, in lowest terms <wrong>.
        """),
    Family("linear_recursion", {"p": (2, 9), "q": (2, 40), "u": (1, 30)}, _recursion, text=r"""
        ask: A sequence satisfies $u_0 = <u>$ and $u_{n+1} = <p>u_n + <q>$. Compute $u_4$.
        ask: Starting from <u>, a computer repeats four times: multiply by <p>, then add <q>. Which number is displayed in
            the end?
        notation: $f(x) = <p>x + <q>$, $f^{\circ 4}(<u>) = {?}$
        plain: A colony of <u> insects becomes <p> times as big each month and afterwards <q> more arrive; tell its size
            when four months have gone by.
        solution: We iterate. First $<p> \cdot <u> + <q> = <one>$, next $<p> \cdot <one> + <q> = <two>$, and thirdly
            $<p> \cdot <two> + <q> = <three>$. || The fourth application gives $<p> \cdot <three> + <q> = <answer>$.
        other: Month by month the colony counts <one>, then <two>, then <three> insects, always the <p> fold of the
            predecessor enlarged by <q>. || The closing month lifts it to <answer>.
        terse: $<u> \mapsto <one> \mapsto <two> \mapsto <three>$ || $\mapsto <answer>$.
        lemma: The opening iterate is $u_1 = <one>$, for $<p> \cdot <u> + <q> = <one>$.
        method: Shift the sequence by the fixed point of $x \mapsto <p>x + <q>$, whereupon from <u> onward it turns
            geometric with ratio <p>.
        subcase: Two steps are harmless, $u_2 = <two>$ because $<p> \cdot <one> + <q> = <two>$ and $u_1 = <one>$; the
            request was about a later index than from <u> to there.
        general: An affine recursion is iterated directly for few steps, and in the long run by subtracting its fixed
            point, which leaves a purely geometric sequence.
        topic: Loan schedules, drug dosage and the towers of Hanoi obey affine feedback. Discrete dynamical systems begin
            with that mildest example.
        changed: A sequence satisfies $u_0 = <u>$ and $u_{n+1} = <p>u_n + <q>$. Compute $u_5$.
        altered: One iteration beyond the fourth value brings us to <alt>.
        error: Four multiplications act upon the start value and the constant enters at the very end, giving
            $<p>^4 \cdot <u> + <q> = <wrong>$.
        """),
    Family("period_six", {"a": (1, 90), "b": (1, 90), "n": (20, 2500)}, _periodic,
           allowed=lambda a, b, n: a != b and b != 2 * a and a != 2 * b, text=r"""
        ask: Let $x_1 = <a>$, $x_2 = <b>$ and $x_{n+1} = x_n - x_{n-1}$ for n ≥ 2. Determine $x_{<n>}$.
        ask: In a list beginning <a>, <b>, every later entry is its left neighbour minus the neighbour further left. Which
            entry stands at position <n>?
        notation: $x_{<n>} = {?}$ for $(E^2 - E + 1)x = 0$, $(x_1, x_2) = (<a>, <b>)$
        plain: Write down <a> and after it <b>; go on by subtracting from the newest number its predecessor. Which number
            is written in place <n>?
        solution: The sequence runs $<a>, <b>, <c>, <e>, <f>, <g>$ and then starts over, so it has period six. We divide,
            $6 \cdot <rounds> + <place> = <n>$. || Thus the term asked for agrees with number <place> of the cycle,
            which is <answer>.
        other: Half a dozen numbers come round for ever, the latter half being the opposites of the former half. Place <n>
            lies <rounds> full rounds beyond place <place>. || Reading that place in the opening round, we find <answer>.
        terse: $E^3 = -1 \Rightarrow E^6 = 1$; $<n> \equiv <place> \pmod 6$ || $\Rightarrow x_{<n>} = x_{<place>} = <answer>$.
        lemma: From $x_{n+3} = -x_n$ it follows that the list started by <a> and <b> repeats itself after six entries.
        method: Write out the opening entries from <a> and <b> until both starting values recur, then reduce the index <n>
            by the period.
        subcase: The third entry is $<b> - <a> = <c>$, whence $x_4 = <e>$; for position <n> one must look farther.
        general: A recursion whose characteristic roots are sixth roots of unity is periodic with period six, therefore
            indices may be reduced to the opening cycle.
        topic: Frieze patterns by Coxeter and Lyness cycles show surprising recurrences. Music canons loop for similar
            structural reasons.
        changed: Let $x_1 = <a>$, $x_2 = <b>$ and $x_{n+1} = x_n - x_{n-1}$ for n ≥ 2. Determine the successor of
            $x_{<n>}$.
        altered: Moving a single place along the six-cycle shows the value <alt>.
        error: After a few terms the sequence settles down, and from then on each entry including that at <n> is <wrong>.
        """),
)
