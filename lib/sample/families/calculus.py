"""Calculus with integer answers: slopes, integrals, extrema, limits."""

from lib.sample.families.family import Family


def _slope(a, b, k):
    return dict(answer=3 * a * k * k + b, kk=k * k, first=3 * a * k * k, a3=3 * a, wrong=a * k**3 + b * k, alt=6 * a * k)


def _integral_shown(a, b, k):
    return dict(a3=3 * a, b2=2 * b, k=k)


def _integral(a3, b2, k):
    a, b = a3 // 3, b2 // 2
    return dict(answer=a * k**3 + b * k**2, a=a, b=b, cube=a * k**3, square=b * k**2, kkk=k**3, kk=k**2,
                wrong=a3 * k * k + b2 * k, alt=2 * a * k**3)


def _fence_shown(t, c):
    return dict(l=4 * t, c=c)


def _fence(l, c):
    q = l // 4
    return dict(answer=2 * q * q * c, q=q, h=2 * q, area=2 * q * q, wrong=(l // 3) ** 2 * c, alt=q * q * c)


def _limit_shown(a, b, k):
    return dict(a=a, b=b, k=k, c=a * k * k + b * k)


def _limit(a, b, k, c):
    return dict(answer=2 * a * k + b, ak=a * k, s=a * k + b, wrong=a * k + b, alt=c)


FAMILIES = (
    Family("tangent_slope", {"a": (2, 15), "b": (2, 60), "k": (2, 12)}, _slope, text=r"""
        ask: What is the slope of the tangent to the curve $y = <a>x^3 + <b>x$ at the point with $x = <k>$?
        ask: Differentiate g(x) = <a>x³ + <b>x and evaluate the derivative at <k>.
        notation: $\left.\frac{\mathrm{d}}{\mathrm{d}x}(<a>x^3 + <b>x)\right|_{x=<k>} = {?}$
        plain: A rocket has risen <a> times the cube of the elapsed seconds plus <b> times these seconds, in metres; how
            fast is it when <k> seconds have elapsed?
        solution: The power rule gives $y' = 3 \cdot <a>x^2 + <b>$, with $3 \cdot <a> = <a3>$. || Substituting, the tangent
            has slope $<a3> \cdot <kk> + <b> = <answer>$.
        other: Speed is the rate of change: the cubic part changes at <a3> times the squared time and the linear part at
            the steady rate <b>. At the given instant the cubic part alone accounts for <first>. || Both parts together
            make a speed of <answer> metres per second.
        terse: $y' = <a3>x^2 + <b>$, $<a3> \cdot <kk> = <first>$ || $\Rightarrow y'(<k>) = <answer>$.
        lemma: The derivative function of $<a>x^3 + <b>x$ is $<a3>x^2 + <b>$, needed at <k> later.
        method: Apply the power rule to the cubic coefficient <a> and the linear coefficient <b>, and insert the abscissa
            <k> afterwards.
        subcase: The monomial $<a>x^3$ on its own has slope $<a3> \cdot <kk> = <first>$ at <k>; the linear part with <b> is
            not included.
        general: Slopes of polynomial curves come from differentiating term by term: bring the exponent down, lower it by
            one, and substitute the abscissa.
        topic: Fermat's adequality found tangents before Newton's fluxions. Barrow's lectures drew infinitesimal triangles
            along curves.
        changed: What is the second derivative of $y = <a>x^3 + <b>x$ at the point with $x = <k>$?
        altered: Differentiating twice kills the linear term, and what remains evaluates to <alt>.
        error: The slope is read from the curve by inserting the abscissa in the equation itself, which shows <wrong>.
        """),
    Family("definite_integral", {"a": (1, 12), "b": (1, 20), "k": (2, 12)}, _integral, shown=_integral_shown,
           text=r"""
        ask: Evaluate the integral $\int_0^{<k>} (<a3>x^2 + <b2>x)\,dx$.
        ask: Find the area under the parabola y = <a3>x² + <b2>x between x = 0 and x = <k>.
        notation: $\int_{[0,<k>]} <a3>x^2 + <b2>x\ \mathrm{d}\lambda(x)$
        plain: Water enters a tank at a rate of <a3> times the squared hours plus <b2> times the hours, in litres an hour;
            how many litres have entered after <k> hours?
        solution: A primitive function is $F(x) = <a>x^3 + <b>x^2$. At the upper limit its terms are
            $<a> \cdot <kkk> = <cube>$ and $<b> \cdot <kk> = <square>$, at zero it vanishes. || By the fundamental theorem
            the integral equals $<cube> + <square> = <answer>$.
        other: Undoing differentiation, the squared hours come from a cube with coefficient <a>, the plain hours from a
            square with coefficient <b>. After the stated duration these amount to <cube> and <square> litres. || The tank
            has taken in <answer> litres.
        terse: $F = <a>x^3 + <b>x^2$, $F(0) = 0$, || $F(<k>) = <answer>$.
        lemma: The function $<a>x^3 + <b>x^2$ is an antiderivative of the integrand $<a3>x^2 + <b2>x$, also on the interval
            up to <k>.
        method: Integrate <a3>x² and <b2>x termwise by raising exponents, then subtract boundary values at 0 and <k>.
        subcase: The quadratic term alone integrates to $<a> \cdot <kkk> = <cube>$ over the interval up to <k> for the
            coefficient <a3>; the contribution of <b2>x is outstanding.
        general: Definite integrals of polynomials: raise each exponent by one, divide by the new exponent, and take the
            difference of boundary values.
        topic: Archimedes exhausted parabolic segments with triangles. Cavalieri's indivisibles and Riemann's sums later
            refined quadrature.
        changed: Evaluate the symmetric integral $\int_{-<k>}^{<k>} (<a3>x^2 + <b2>x)\,dx$.
        altered: The odd part cancels by symmetry while the even part doubles, so we get <alt>.
        error: Inserting the upper limit straight into the integrand provides the accumulated amount <wrong>.
        """),
    Family("fence_at_wall", {"t": (3, 150), "c": (2, 40)}, _fence, shown=_fence_shown,
           text=r"""
        ask: With <l> metres of fence a rectangular meadow is enclosed along a straight wall, the wall side staying
            unfenced. Each square metre feeds <c> bees; how many bees can be fed at most?
        ask: Maximise <c>·x·(<l> − 2x) over all admissible lengths x.
        notation: $\max_{2x + y = <l>} <c>xy = {?}$
        plain: Next to a canal a farmer ropes off a rectangle, needing rope on three sides only and owning <l> metres of
            it; a square metre earns <c> coins. What is his best income?
        solution: Let x be the width perpendicular to the wall; the area is $x(<l> - 2x)$ with derivative $<l> - 4x$. It
            vanishes for $x = <l>/4 = <q>$, and the area is then $<q> \cdot <h> = <area>$. || At <c> per square metre the
            maximum is $<c> \cdot <area> = <answer>$.
        other: Mirroring the rectangle in the canal shows that the doubled shape must be a square, so the two short sides
            are <q> each and the long side is <h>. This plot covers <area>. || His best income therefore amounts to
            <answer> coins.
        terse: $x^* = <q>$, $y^* = <h>$, $x^*y^* = <area>$ || $\Rightarrow <c> \cdot <area> = <answer>$.
        lemma: The area function $x(<l> - 2x)$ has its only critical point at $x = <q>$, and <c> is a constant factor.
        method: Eliminate one side with the constraint <l>, complete the square or differentiate, and scale by <c> at the
            end.
        subcase: A test with the critical width $<l>/4 = <q>$ gives a long side of <h>; yield at rate <c> is not worked
            out.
        general: Three-sided enclosures are optimal when the long side is twice each short one; eliminate a side through
            the constraint and find the vertex of the parabola.
        topic: Queen Dido bounded Carthage with strips of oxhide beside the sea. Isoperimetric questions fascinated
            Zenodorus as well as Steiner.
        changed: With <l> metres of fence a rectangular meadow is enclosed on all four sides. Each square metre feeds <c>
            bees; how many bees can be fed at most?
        altered: Without the wall the best shape is a square, and it supports <alt>.
        error: Three sides share the fence equally at the optimum, so a square upon a third of the length feeds <wrong>.
        """),
    Family("difference_quotient", {"a": (2, 20), "b": (2, 60), "k": (2, 25)}, _limit, shown=_limit_shown, text=r"""
        ask: Determine $\lim_{x \to <k>} \frac{<a>x^2 + <b>x - <c>}{x - <k>}$.
        ask: Which value should h(x) = (<a>x² + <b>x − <c>)/(x − <k>) be given at x = <k> in order to become continuous?
        notation: $\operatorname{res}_{z=<k>}\,(<a>z^2 + <b>z - <c>)/(z - <k>)^2$
        plain: A quadratic with leading coefficient <a> and linear coefficient <b>, lowered by <c>, is zero at <k>; divided
            by the distance to that point, toward what number does it tend there?
        solution: The numerator vanishes at the critical point and factors as $(x - <k>)(<a>x + <s>)$, for
            $<a> \cdot <k> + <b> = <s>$. || Cancelling, the limit is $<a> \cdot <k> + <s> = <answer>$.
        other: Splitting off the vanishing factor leaves a linear expression with coefficient <a> and constant <s>, which
            has no singular behaviour any more. || Evaluated at the critical point it tends to <answer>.
        terse: $<a>x^2 + <b>x - <c> = (x - <k>)(<a>x + <s>)$ || $\Rightarrow \lim = <ak> + <s> = <answer>$.
        lemma: Polynomial division yields $(x - <k>)(<a>x + <s>) = <a>x^2 + <b>x - <c>$ identically.
        method: Since <k> annuls $<a>x^2 + <b>x - <c>$, split off the corresponding linear factor or apply l'Hospital's rule.
        subcase: Ignoring the linear term, $<a>(x^2 - <k>^2)$ divided by $x - <k>$ tends to twice <ak>; terms with <b>
            and <c> are set aside.
        general: Indeterminate quotients of polynomials are resolved by splitting off the common linear factor; equivalently
            the limit is the numerator's derivative.
        topic: Marquis de l'Hospital bought his rule from Johann Bernoulli. Cauchy's Cours d'analyse finally said what
            approaching means.
        changed: Determine $\lim_{x \to <k>} (<a>x^2 + <b>x)$, compared with <c>.
        altered: The polynomial is continuous, so simple substitution gives <alt>.
        error: One cancels the distance against the leading square once and substitutes, so $<a> \cdot <k> + <b> = <wrong>$.
        """),
)
