"""Matrices of integers: determinants, traces, products of shears."""

from lib.sample.families.family import Family


def _determinant(a, b, c, d):
    base = a * d - b * c
    return dict(answer=base**3, ad=a * d, bc=b * c, base=base, square=base**2, wrong=3 * base, alt=2**2 * base)


def _trace(a, b, c, d):
    return dict(answer=a * a + 2 * b * c + d * d, aa=a * a, dd=d * d, bc=b * c, t=a + d,
                p=a * a + b * c, q=b * c + d * d, wrong=(a + d) ** 2, alt=a + d)


def _shear(a, n, b, m):
    return dict(answer=a * n + b * m, an=a * n, bm=b * m, wrong=a**2 * n + b * m, alt=a * n - b * m)


def _cramer_shown(a, b, c, d, x, y):
    return dict(a=a, b=b, c=c, d=d, e=a * x + b * y, f=c * x + d * y)


def _cramer(a, b, c, d, e, f):
    det = a * d - b * c
    top, other = e * d - b * f, a * f - e * c
    return dict(answer=top // det, det=det, top=top, ed=e * d, bf=b * f, ad=a * d, bc=b * c, wrong=e + f,
                alt=other // det, other=other)


FAMILIES = (
    Family("determinant_cube", {"a": (3, 15), "b": (1, 9), "c": (1, 9), "d": (3, 15)}, _determinant,
           allowed=lambda a, b, c, d: 2 < a * d - b * c < 100, text=r"""
        ask: Let $A = \begin{pmatrix} <a> & <b> \\ <c> & <d> \end{pmatrix}$. Compute $\det(A^3)$.
        ask: What is the determinant of the third power of the 2×2 matrix [[<a>, <b>], [<c>, <d>]]?
        notation: $|M|^3$, $M = \left[\begin{smallmatrix} <a> & <b> \\ <c> & <d> \end{smallmatrix}\right]$
        plain: A linear map sends the first unit vector to <a>, <c> and the second to <b>, <d>; by which factor do areas grow
            when it is applied three times?
        solution: Determinants are multiplicative, so it suffices to know $\det A$, which is
            $<a> \cdot <d> - <b> \cdot <c> = <base>$. || Consequently $\det(A^3) = <base> \cdot <base> \cdot <base> = <answer>$.
        other: A single application multiplies areas by the difference of <ad> and <bc>, that is by <base>. Applied twice,
            the factor has become <square>. || The third application turns it into <answer>.
        terse: $\det = <ad> - <bc> = <base>$ || $\Rightarrow \det(\cdot)^3 = <answer>$.
        lemma: Entries <a>, <b> above <c>, <d> produce the determinant $<ad> - <bc> = <base>$.
        method: Never multiply the matrix with entries <a>, <b>, <c>, <d> out: use multiplicativity of the determinant.
        subcase: For the square one finds $\det(A^2) = <base> \cdot <base> = <square>$, where
            $<a> \cdot <d> - <b> \cdot <c> = <base>$; a further factor is wanted.
        general: The determinant of a product is the product of determinants, hence powers of a matrix have the
            corresponding powers as determinant.
        topic: Seki Takakazu and Leibniz discovered determinants independently. Cayley's memoir of 1858 gave matrices a life
            of their own.
        changed: Let $A = \begin{pmatrix} <a> & <b> \\ <c> & <d> \end{pmatrix}$. Compute $\det(2A)$.
        altered: Doubling scales both rows, so the determinant is quadrupled to <alt>.
        error: Taking a third power triples the determinant, hence $3 \cdot <base> = <wrong>$.
        """),
    Family("trace_of_square", {"a": (2, 30), "b": (1, 20), "c": (1, 20), "d": (2, 30)}, _trace,
           allowed=lambda a, b, c, d: a != d and b != c, text=r"""
        ask: Find the trace of $B^2$ where $B = \left(\begin{array}{cc} <a> & <b> \cr <c> & <d> \end{array}\right)$.
        ask: An operator maps $e_1$ to $<a>e_1 + <c>e_2$ and $e_2$ to $<b>e_1 + <d>e_2$.
            Its eigenvalues are squared and added; what is the sum?
        notation: $\operatorname{tr}(B \circ B) = {?},\ (B_{11}, B_{12}, B_{21}, B_{22}) = (<a>, <b>, <c>, <d>)$
        plain: In a two-state network there are <a> loops at the former state, <d> loops at the latter, <b> arrows over and <c>
            arrows back; how many closed walks of length two exist?
        solution: Multiplying rows by columns, the diagonal entries of the square are $<a> \cdot <a> + <b> \cdot <c> = <p>$ and
            $<b> \cdot <c> + <d> \cdot <d> = <q>$. || The trace is their sum $<p> + <q> = <answer>$.
        other: Walks staying at the former state number <aa>, those staying at the latter <dd>, and going over and back or
            back and over is possible in <bc> ways from either side. || So <answer> closed walks exist.
        terse: $(B^2)_{11} = <p>$, $(B^2)_{22} = <q>$; || $\operatorname{tr} B^2 = <answer>$.
        lemma: The upper left entry of the square is $<a> \cdot <a> + <b> \cdot <c> = <p>$, with <d> playing no part in it.
        method: Either multiply out only the diagonal of the square of the matrix <a>, <b>, <c>, <d>, or use the
            Cayley–Hamilton relation.
        subcase: Were the off-diagonal entries <b> and <c> zero, one would get $<aa> + <dd>$ from <a> and <d>; they are not.
        general: The trace of a squared matrix is the sum of all products of mirrored entries; it equals squared trace minus
            twice the determinant for two rows.
        topic: Frobenius characters are traces, and spectral graph theory counts cycles by them. Trace formulas even reach
            number theory with Selberg.
        changed: Find the trace of B itself where $B = \left(\begin{array}{cc} <a> & <b> \cr <c> & <d> \end{array}\right)$.
        altered: Adding the diagonal gives <alt> at once.
        error: Trace and squaring commute, therefore the square of $<a> + <d> = <t>$ is the answer, <wrong>.
        """),
    Family("shear_product", {"a": (2, 40), "n": (3, 60), "b": (2, 40), "m": (3, 60)}, _shear, text=r"""
        ask: What is the upper right entry of
            $\begin{pmatrix} 1 & <a> \\ 0 & 1 \end{pmatrix}^{<n>} \begin{pmatrix} 1 & <b> \\ 0 & 1 \end{pmatrix}^{<m>}$?
        ask: A shear pushes points sideways by <a> per unit of height and is done <n> times; afterwards a shear by <b> is done
            <m> times. By how much is a point of height one moved?
        notation: $T_{<a>}^{<n>} T_{<b>}^{<m>} = T_{?}$ with $T_s = \exp(sE_{12})$
        plain: Pushing a pile of cards, its top slides <a> millimetres with each of <n> pushes and <b> millimetres with each
            of <m> more pushes; how far has the top slid?
        solution: Upper triangular matrices with unit diagonal multiply by adding the corner entries. The power on the left
            has corner $<n> \cdot <a> = <an>$, the other one $<m> \cdot <b> = <bm>$. || The product's corner entry is
            $<an> + <bm> = <answer>$.
        other: Sliding distances accumulate since height never changes. The former pushes are responsible for <an>
            millimetres, the latter for <bm>. || Hence the top has slid <answer> millimetres.
        terse: $T_sT_t = T_{s+t}$: $<n> \cdot <a> \to <an>$, $<m> \cdot <b> \to <bm>$ || $\Rightarrow T_{<answer>}$.
        lemma: The map sending s to its shear is a homomorphism from addition, so the <n>-th power of the shear by <a> is the
            shear by <an>, while <b> and <m> behave likewise.
        method: Add corner entries in place of multiplying: the exponents <n> and <m> count how frequently <a> and <b> occur.
        subcase: The former factor alone equals a shear by $<n> \cdot <a> = <an>$; the factor built from <b> and <m> is
            skipped.
        general: Unipotent two-row matrices commute and form a copy of the additive group, so powers and products translate
            into multiples and sums of corner entries.
        topic: Photographs of Pisa's tower and italic typefaces exemplify shears. Heisenberg's group begins one size higher.
        changed: What is the upper right entry of
            $\begin{pmatrix} 1 & <a> \\ 0 & 1 \end{pmatrix}^{<n>} \begin{pmatrix} 1 & <b> \\ 0 & 1 \end{pmatrix}^{-<m>}$?
        altered: Inverse shears push backwards, so the difference of both multiples appears, <alt>.
        error: Raising the matrix raises the corner entry too, squares pile up, and one calculates <wrong>.
        """),
    Family("cramer_rule", {"a": (2, 15), "b": (1, 14), "c": (1, 14), "d": (2, 15), "x": (1, 30), "y": (1, 30)}, _cramer,
           shown=_cramer_shown, allowed=lambda a, b, c, d, e, f: a * d - b * c > 1, text=r"""
        ask: Solve $<a>x + <b>y = <e>$, $<c>x + <d>y = <f>$ for x.
        ask: The simultaneous linear equations <a>x + <b>y = <e> and <c>x + <d>y = <f> have a unique solution; state its
            first coordinate.
        notation: $e_1^\top [<a>, <b>; <c>, <d>]^{-1} [<e>; <f>] = {?}$
        plain: For <a> apples and <b> pears one pays <e> cents, for <c> apples and <d> pears <f> cents; find the price of an
            apple.
        solution: The coefficient determinant is $<a> \cdot <d> - <b> \cdot <c> = <det>$. Replacing the x-column by the right
            sides we get $<e> \cdot <d> - <b> \cdot <f> = <top>$. || Cramer's rule gives $x = <top>/<det> = <answer>$.
        other: Buy the former basket <d> times and return the latter basket <b> times; pears cancel. Apples remain in the
            quantity <det> and the bill becomes <top> cents. || Consequently an apple costs <answer> cents.
        terse: $D = <ad> - <bc> = <det>$, $D_x = <ed> - <bf> = <top>$ || $\Rightarrow x = <answer>$.
        lemma: The system is regular, as its determinant equals $<a> \cdot <d> - <b> \cdot <c> = <det>$, whatever stands on the
            right, here <e> and <f>.
        method: Multiply the equations by <d> and <b> crosswise, subtract, and the unknown y disappears from
            $<a>x + <b>y = <e>$ and $<c>x + <d>y = <f>$.
        subcase: Eliminating x instead, y is $<a> \cdot <f> - <e> \cdot <c> = <other>$ divided by the determinant of <a>, <b>,
            <c>, <d>, thus $y = <alt>$; x is not reported.
        general: Cramer's rule solves a regular square system through quotients of determinants, the numerator having the
            right side in place of the unknown's column.
        topic: The Nine Chapters eliminate with counting rods on a board. Gabriel Cramer needed his rule for curves through
            given points.
        changed: Solve $<a>x + <b>y = <e>$, $<c>x + <d>y = <f>$ for y.
        altered: Replacing the other column, the quotient of determinants becomes <alt>.
        error: Both right sides describe the same unknown, so we combine them to $<e> + <f> = <wrong>$.
        """),
)
