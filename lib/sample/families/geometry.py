"""Geometry with integers: lattice polygons, triangles, circles, cuboids, solids."""

from fractions import Fraction

from lib.sample.families.family import Family


def _pick_shown(i, h):
    return dict(i=i, b=2 * h)


def _pick(i, b):
    return dict(answer=i + b // 2 - 1, h=b // 2, s=i + b // 2, wrong=i + b - 1, alt=i + b)


def _shoelace(a, b, c, d):
    return dict(answer=abs(a * d - b * c), ad=a * d, bc=b * c, wrong=a * d + b * c, alt=Fraction(abs(a * d - b * c), 2),
                box=a * b)


def _incircle_shown(m, n, k):
    return dict(a=k * (m * m - n * n), b=2 * k * m * n)


def _incircle(a, b):
    c = int((a * a + b * b) ** 0.5 + 0.5)
    return dict(answer=(a + b - c) // 2, c=c, s=a * a + b * b, twice=a + b - c, legs=a + b, wrong=Fraction(a * b, a + b),
                alt=Fraction(c, 2), area=a * b // 2)


def _cube(a, b, c):
    free = (a - 2) + (b - 2) + (c - 2)
    faces = 2 * ((a - 2) * (b - 2) + (a - 2) * (c - 2) + (b - 2) * (c - 2))
    return dict(answer=4 * free, x=a - 2, y=b - 2, z=c - 2, free=free, wrong=4 * (a + b + c), alt=faces, four=4 * (a - 2))


def _chord_shown(u, v, x, y):
    return dict(a=u * v, b=x * y, c=u * x)


def _chord(a, b, c):
    return dict(answer=a * b // c, power=a * b, wrong=a + b - c, alt=a * b // c + c)


def _solid_shown(t, s):
    return dict(t=2 * t, s=s)


def _solid(t, s):
    e = (3 * t + 4 * s) // 2
    return dict(answer=e - t - s + 2, e=e, sides=3 * t + 4 * s, f=t + s, wrong=e - t - s, alt=e,
                tri=3 * t, quad=4 * s)


FAMILIES = (
    Family("pick_area", {"i": (3, 300), "h": (2, 80)}, _pick, shown=_pick_shown, text=r"""
        ask: A simple lattice polygon has <i> lattice points inside and <b> on its boundary. What is its area?
        ask: On a geoboard a rubber band without crossings touches <b> pegs and encloses <i> further pegs. Which area, in
            unit squares, does it bound?
        notation: $A(P) = {?}$ when $|P^\circ \cap \mathbb{Z}^2| = <i>$, $|\partial P \cap \mathbb{Z}^2| = <b>$
        plain: A garden with straight hedges has all corners at crossings of a unit grid; <b> crossings lie along the
            hedge and <i> crossings are strictly within. How large is the garden?
        solution: Pick's theorem applies, $A = I + B/2 - 1$. Half of the boundary points are $<b>/2 = <h>$. || Inserting
            gives an area of $<i> + <h> - 1 = <answer>$.
        other: Interior crossings count fully and hedge crossings by half, so we collect <i> and <h>, together <s>. || The
            corners turn through one full circle, costing a single unit, and the garden measures <answer>.
        terse: Pick: $I = <i>$, $B/2 = <h>$ || $\Rightarrow A = <s> - 1 = <answer>$.
        lemma: In Pick's formula the <b> boundary points enter with weight one half, contributing $<b>/2 = <h>$ beside the
            <i> interior ones.
        method: Triangulate the polygon with <i> inner and <b> boundary points into elementary triangles of area one half
            and count these by angles.
        subcase: Neglecting the correction for the corners, the weighted point count is $<i> + <h> = <s>$ where
            $<b>/2 = <h>$; the correction has to be made still.
        general: Pick's theorem: a lattice polygon's area is interior points plus half the boundary points less one, proved
            through triangulation into primitive triangles.
        topic: Georg Alexander Pick published in Prague in 1899 and knew Einstein well. Steinhaus made his formula popular
            through a famous snapshot book.
        changed: A simple lattice polygon has <i> lattice points inside and <b> on its boundary. How many lattice points
            does it contain altogether?
        altered: Interior and boundary are disjoint, and together they hold <alt> points.
        error: Each lattice point stands for a unit square and one is lost at the start, so the area is
            $<i> + <b> - 1 = <wrong>$.
        """),
    Family("triangle_determinant", {"a": (2, 40), "b": (2, 40), "c": (2, 40), "d": (2, 40)}, _shoelace,
           allowed=lambda a, b, c, d: a * d - b * c > 5, text=r"""
        ask: The triangle with vertices (0, 0), (<a>, <b>) and (<c>, <d>) is completed to a parallelogram. What is the
            area of this parallelogram?
        ask: Find the area of the parallelogram spanned by the plane vectors u = (<a>, <b>) and v = (<c>, <d>).
        notation: $\lVert (<a>,<b>) \wedge (<c>,<d>) \rVert = {?}$
        plain: Two arrows leave a common corner: one goes <a> east and <b> north, the other <c> east and <d> north. How
            much ground does the four-sided figure with these arrows as sides cover?
        solution: Orient the vectors and form the cross product, whose two terms are $<a> \cdot <d> = <ad>$ and
            $<b> \cdot <c> = <bc>$. || The parallelogram has area $<ad> - <bc> = <answer>$.
        other: Cut the covering rectangle: crosswise multiplication of the arrows produces <ad> on the one hand and <bc>
            on the other. || Shear invariance shows that their difference, <answer>, is the ground covered.
        terse: $u_1v_2 = <ad>$, $u_2v_1 = <bc>$, || $|u \wedge v| = <answer>$.
        lemma: Shearing along (<a>, <b>) does not alter areas, so (<c>, <d>) may be replaced by any vector with equal
            cross product.
        method: Arrange (<a>, <b>) and (<c>, <d>) as columns and take the absolute value of the signed area form.
        subcase: If the second arrow were purely vertical of length <b>, a rectangle-like area $<a> \cdot <b> = <box>$
            would result; the actual arrow (<c>, <d>) is slanted.
        general: The area spanned by two plane vectors is the absolute value of their cross product, first times second
            coordinate minus the mirrored product.
        topic: Surveyors close their traverses with the shoelace rule of Meister. Grassmann's exterior algebra extends
            oriented areas to any dimension.
        changed: What is the area of the triangle with vertices (0, 0), (<a>, <b>) and (<c>, <d>) itself?
        altered: The triangle is half of the spanned figure, so it covers <alt>.
        error: Both crosswise products are areas and have to be added, and $<ad> + <bc> = <wrong>$ is covered.
        """),
    Family("incircle_radius", {"m": (2, 12), "n": (1, 11), "k": (1, 9)}, _incircle, shown=_incircle_shown,
           allowed=lambda a, b: a > 0, text=r"""
        ask: A right triangle has legs <a> and <b>. Find the radius of its inscribed circle.
        ask: How big is the inradius of the triangle ABC with a right angle at C, AC = <b> and BC = <a>?
        notation: $r = {?}$ for $\triangle ABC$, $\gamma = 90^\circ$, $(a, b) = (<a>, <b>)$
        plain: From a rectangular plate with sides <a> and <b>, halved along its diagonal, the largest possible disc is
            punched out of one half; what is the distance from the disc's centre to its rim?
        solution: By Pythagoras the hypotenuse is <c>, as $<a> \cdot <a> + <b> \cdot <b> = <s>$ and
            $<c> \cdot <c> = <s>$. Tangent segments from each vertex agree, hence $2r = a + b - c$. || Therefore
            $r = (<a> + <b> - <c>)/2 = <answer>$.
        other: The slanted cut measures <c>. Walking along both straight sides, <legs> in total, we use up the slanted
            length and twice the wanted distance, so that doubled distance is <twice>. || The disc's centre lies <answer>
            away from its rim.
        terse: $c = <c>$; $2r = <a> + <b> - <c>$ || $= <twice>$, $r = <answer>$.
        lemma: The hypotenuse over the legs <a> and <b> has length <c>, since $<c> \cdot <c> = <s>$.
        method: Equate tangent lengths at the three vertices of the triangle with legs <a> and <b>, or divide doubled area
            by perimeter.
        subcase: The area of the triangle is $<a> \cdot <b> / 2 = <area>$; dividing it by the semiperimeter would be the
            next task.
        general: In a right triangle the inscribed circle's diameter equals the sum of the legs minus the hypotenuse,
            because tangent segments from a vertex are equal.
        topic: Liu Hui dissected such triangles with coloured pieces around 263. Sangaku tablets in Japanese temples adore
            tangent circles.
        changed: A right triangle has legs <a> and <b>. Find the radius of its circumscribed circle.
        altered: By Thales the hypotenuse is a diameter, hence this radius equals <alt>.
        error: A square fits into the corner with side product over sum of the legs, and its side <wrong> is the inradius.
        """),
    Family("painted_cuboid", {"a": (3, 30), "b": (3, 30), "c": (3, 30)}, _cube, text=r"""
        ask: A wooden block of size <a> × <b> × <c> is painted and sawn into unit cubes. How many unit cubes have exactly
            two painted faces?
        ask: The outside of a cuboid with integer edges <a>, <b>, <c> is varnished before it is cut into cubes with edge
            1; count cubes varnished on precisely two sides.
        notation: $\#\{q \in [<a>]\times[<b>]\times[<c>] : \text{two coordinates extreme}\}$
        plain: Sugar lumps are packed as a brick, <a> long, <b> wide and <c> high, and the brick is dipped in chocolate;
            how many lumps wear chocolate on just two sides?
        solution: Such cubes sit along edges but not at corners. An edge of each direction carries $<a> - 2 = <x>$,
            $<b> - 2 = <y>$ and $<c> - 2 = <z>$ of them respectively. || As every direction occurs on four edges, there
            are $4 \cdot (<x> + <y> + <z>) = <answer>$ cubes.
        other: Corner lumps wear three coats and must be dropped, so along the three directions an edge keeps <x>, <y> and
            <z> lumps, together <free>. || A brick owns four edges per direction, which makes <answer> lumps.
        terse: $(<a>-2) + (<b>-2) + (<c>-2) = <free>$ || $\Rightarrow 4 \cdot <free> = <answer>$.
        lemma: On an edge of length <a> exactly <x> unit cubes are not corners, and analogously <y> and <z> on edges of
            lengths <b> and <c>.
        method: Classify unit cubes of the <a> × <b> × <c> block by the number of extreme coordinates: corners, edges,
            faces, core.
        subcase: The four edges parallel to the side <a> provide $4 \cdot <x> = <four>$ such cubes; directions <b> and <c>
            are left to the reader.
        general: Unit cubes with two coloured faces are edge cubes that are no corners: on every edge take its length minus
            two, and each direction has four parallel edges.
        topic: Froebel's gifts brought dissected blocks into kindergartens. Rubik's puzzle distinguishes corner, edge and
            centre pieces likewise.
        changed: A wooden block of size <a> × <b> × <c> is painted and sawn into unit cubes. How many unit cubes have
            exactly one painted face?
        altered: These lie in the interiors of the six sides, and adding opposite rectangles yields <alt>.
        error: The block has edges of total length $4 \cdot (<a> + <b> + <c>) = <wrong>$ and every edge cube shows two
            painted faces.
        """),
    Family("chord_power", {"u": (1, 14), "v": (1, 14), "x": (1, 14), "y": (1, 14)}, _chord, shown=_chord_shown,
           allowed=lambda a, b, c: c not in (a, b), text=r"""
        ask: Chords AB and CD of a circle meet at P. If PA = <a>, PB = <b> and PC = <c>, how long is PD?
        ask: Inside a circle two chords cross; the crossing divides one into pieces <a> and <b>, and one piece of the other
            measures <c>. Find its remaining piece.
        notation: $|PA| \cdot |PB| = |PC| \cdot |PD|$, $(|PA|, |PB|, |PC|) = (<a>, <b>, <c>)$, $|PD| = {?}$
        plain: Two straight footpaths intersect within a round lawn and end at its rim. One stretches <a> and <b> metres to
            either side of the intersection, its rival <c> metres toward one side; how far on the opposite side?
        solution: Triangles PAC and PDB are similar, since angles over equal arcs agree. It follows that
            $PA \cdot PB = PC \cdot PD$, and $<a> \cdot <b> = <power>$. || Division shows $PD = <power>/<c> = <answer>$.
        other: For every path through the intersection the two stretches have one and the same product. The completely
            known path fixes it at <power>. || With one stretch being <c>, the opposite stretch has to be <answer>.
        terse: $\mathrm{pow}(P) = <a> \cdot <b> = <power>$; || $|PD| = <power> : <c> \to <answer>$.
        lemma: The power of P with respect to the circle is $<a> \cdot <b> = <power>$ in absolute value, for any chord
            through P, also the one with piece <c>.
        method: Use similarity of the triangles cut off by the chords with pieces <a>, <b> and <c>, or quote the
            intersecting chords theorem.
        subcase: Should both pieces of the second chord be equal, their square would be $<a> \cdot <b> = <power>$; the
            prescribed piece <c> destroys that symmetry.
        general: Products of the two segments are equal for all chords through a fixed inner point; inscribed angles give
            similar triangles that prove it.
        topic: Jakob Steiner coined the power of a point in 1826. Radical axes and inversions grow from it, already hinted
            at in Euclid's third book.
        changed: Chords AB and CD of a circle meet at P. If PA = <a>, PB = <b> and PC = <c>, how long is the whole chord CD?
        altered: Adding the known piece to the computed one, the complete chord measures <alt>.
        error: Chords through a common point have pieces with equal sum, whence $PD = <a> + <b> - <c> = <wrong>$.
        """),
    Family("euler_solid", {"t": (2, 60), "s": (1, 120)}, _solid, shown=_solid_shown, text=r"""
        ask: A convex polyhedron is bounded by <t> triangles and <s> quadrilaterals. How many vertices does it have?
        ask: The surface of a convex solid consists of <t> three-sided and <s> four-sided faces. Determine the number of
            its corners.
        notation: $V = {?}$ if $f_3 = <t>,\ f_4 = <s>$, $\chi = 2$
        plain: A paper lantern without dents is glued from <t> three-cornered and <s> four-cornered sheets; how many tips
            has the lantern?
        solution: Every edge borders two faces, so counting sides, $3 \cdot <t> + 4 \cdot <s> = <sides>$, gives
            $E = <sides>/2 = <e>$. The faces number $F = <t> + <s> = <f>$. || Euler's formula yields
            $V = <e> - <f> + 2 = <answer>$.
        other: The sheets have <tri> plus <quad> rims, glued pairwise into <e> seams, and there are <f> sheets. || Tips and
            sheets together exceed the seams by two, so the lantern has <answer> tips.
        terse: $2E = <sides>$, $E = <e>$, $F = <f>$ || $\Rightarrow V = 2 + <e> - <f> = <answer>$.
        lemma: The polyhedron possesses exactly <e> edges, half of $3 \cdot <t> + 4 \cdot <s> = <sides>$.
        method: Double count the sides of the <t> triangles and <s> quadrilaterals to find the edges, then invoke Euler's
            polyhedron formula.
        subcase: The triangles contribute $3 \cdot <t> = <tri>$ sides; the quadrilaterals, <s> in number, remain to be
            included.
        general: For convex polyhedra vertices minus edges plus faces is two; counting face sides gives twice the edges and
            thereby the vertices.
        topic: Lakatos turned the history of this formula into a lively classroom dialogue. Descartes had noted an
            equivalent statement on angular defects.
        changed: A convex polyhedron is bounded by <t> triangles and <s> quadrilaterals. How many edges does it have?
        altered: Each edge separates two faces, and halving the side count makes <alt>.
        error: Vertices and faces balance the edges, so $<e> - <f> = <wrong>$ vertices are present.
        """),
)
