"""Combinatorics: selections, paths, sieves, schedules, drawers."""

from math import comb

from lib.sample.families.family import Family


def _committee(m, w, i, j):
    x, y = comb(m, i), comb(w, j)
    return dict(answer=x * y, x=x, y=y, wrong=comb(m + w, i + j), alt=x * y * (i + j), size=i + j)


def _stars(n, k, c):
    r = n - c
    return dict(answer=comb(r + k - 1, k - 1), r=r, top=r + k - 1, bars=k - 1, wrong=comb(n + k - 1, k - 1),
                alt=comb(r, k - 1), pairs=r + 1)


def _paths(a, b, c, d):
    x, y = comb(c + d, c), comb(a - c + b - d, a - c)
    total = comb(a + b, a)
    return dict(answer=x * y, x=x, y=y, wrong=x + y, alt=total - x * y, total=total, s=c + d, t=a - c + b - d, e=a - c)


def _either(n, a, b, l):
    x, y, z = n // a, n // b, n // l
    return dict(answer=x + y - z, x=x, y=y, z=z, wrong=x + y, alt=n - (x + y - z))


def _league(n, m, s, t):
    east, west, cross = n * (n - 1) // 2, m * (m - 1) // 2, n * m
    return dict(answer=s * (east + west) + t * cross, east=east, west=west, cross=cross, inside=s * (east + west),
                outside=t * cross, wrong=2 * s * (east + west) + t * cross, alt=s * (east + west))


def _drawer(r, b, g, k):
    return dict(answer=3 * (k - 1) + 1, h=k - 1, most=3 * (k - 1), wrong=3 * k, alt=b + g + k, bg=b + g, two=2 * (k - 1))


def _lcm_shown(n, g, u, v):
    return dict(n=n, a=g * u, b=g * v, l=g * u * v)


FAMILIES = (
    Family("committee", {"m": (6, 15), "w": (6, 15), "i": (2, 5), "j": (2, 5)}, _committee, text=r"""
        ask: A club has <m> men and <w> women. In how many ways can it elect a committee of <i> men and <j> women?
        ask: From <m> gentlemen and <w> ladies a delegation with exactly <i> gentlemen and <j> ladies is formed. How
            many delegations are conceivable?
        notation: $\binom{<m>}{<i>}\binom{<w>}{<j>} = {?}$
        plain: Out of <m> boys and <w> girls a teacher takes <i> boys and <j> girls along on an excursion; count the
            possible excursion parties.
        solution: Order inside the committee is irrelevant, so the men can be elected in $\binom{<m>}{<i>}$, that is
            <x> ways, the women in $\binom{<w>}{<j>}$, that is <y> ways. || Both elections combine freely, and the club
            has $<x> \cdot <y> = <answer>$ possible committees.
        other: There are <x> groups of <i> to be had from the <m> males and <y> groups of <j> from the <w> females. Any
            male group may be joined with any female group. || By the product rule this makes <answer> different
            parties.
        terse: $\binom{<m>}{<i>} \to <x>$, $\binom{<w>}{<j>} \to <y>$, || $\#= <x> \times <y> = <answer>$.
        lemma: The <m> men alone furnish exactly <x> unordered groups of <i>, the binomial coefficient
            $\binom{<m>}{<i>}$.
        method: Elect the <i> men and the <j> women in two separate unordered selections and multiply both binomial
            coefficients.
        subcase: If only the women are elected, there are <y> ways to pick <j> among the <w>; the men remain to be
            dealt with.
        general: When a body consists of fixed numbers from separate pools, choose from every pool by a binomial
            coefficient and multiply, because selections from distinct pools never interfere.
        topic: Pascal's triangle was known to Jia Xian and al-Karaji long before Pascal. Electoral bodies, card hands and
            bridge deals are standard playgrounds for unordered selections.
        changed: A club has <m> men and <w> women. In how many ways can it elect a committee of <i> men and <j> women
            and appoint one committee member as its chair?
        altered: Besides choosing members, one of <size> people takes the chair, which multiplies everything up to
            <alt>.
        error: Altogether <size> persons leave the club's pool, so a single binomial coefficient over everybody is
            enough, giving <wrong> committees.
        """),
    Family("bounded_stars", {"n": (15, 60), "k": (3, 6), "c": (2, 12)}, _stars, text=r"""
        ask: How many solutions in nonnegative integers does $x_1 + \dots + x_{<k>} = <n>$ have if moreover
            $x_1 \ge <c>$?
        ask: In how many ways can <n> identical coins be shared among <k> children when the eldest insists upon at least
            <c> coins?
        notation: $\#\{x \in \mathbb{N}_0^{<k>} : |x| = <n>,\ x_1 \ge <c>\}$
        plain: Distribute <n> equal marbles over <k> labelled boxes so that the foremost box receives <c> marbles or
            more; count the distributions.
        solution: Hand the required amount to the first variable and substitute $y = x_1 - <c>$; what remains to be
            shared is $<n> - <c> = <r>$ without restrictions. By stars and bars we place <bars> bars among <top> symbols.
            || The binomial coefficient $\binom{<top>}{<bars>}$ equals <answer>.
        other: Put <c> marbles into the demanding box beforehand, so <r> marbles are still to be dealt out freely.
            Lining up these marbles together with <bars> partitions, only the partition places matter among <top>
            positions. || Selecting those places can be done in <answer> ways.
        terse: $<n> - <c> = <r>$, $\binom{<r> + <k> - 1}{<k> - 1}$ || $= \binom{<top>}{<bars>} \to <answer>$.
        lemma: Subtracting the guaranteed <c> coins gives a bijection onto unrestricted distributions of <r> coins among
            <k> children.
        method: Serve the lower bound <c> in advance and arrange the remaining coins with <bars> separators in a row.
        subcase: For merely two boxes the leftover <r> marbles can be split in $<r> + 1 = <pairs>$ ways; more boxes are
            not considered.
        general: Lower bounds in distribution problems disappear by handing out the guaranteed amounts beforehand; what
            is left is an unrestricted stars-and-bars count.
        topic: Physicists meet indistinguishable objects as bosons, and Ehrenfest drew the picture with separators in
            1915. Bakeries selling assorted doughnuts provide a sweeter model.
        changed: How many solutions in nonnegative integers does $x_1 + \dots + x_{<k>} = <n>$ have if $x_1 \ge <c>$
            and all other variables are strictly positive?
        altered: Every other variable also surrenders a unit, so we choose <bars> separators among <r> places, which
            yields <alt>.
        error: A bound upon a single variable cannot matter for the amount of solutions, so ordinary stars and bars with
            total <n> produces <wrong>.
        """),
    Family("paths_through", {"a": (6, 14), "b": (6, 14), "c": (2, 9), "d": (2, 9)}, _paths,
           allowed=lambda a, b, c, d: c < a - 1 and d < b - 1, text=r"""
        ask: How many lattice paths with unit steps right and up lead from (0, 0) to (<a>, <b>) through the point
            (<c>, <d>)?
        ask: A taxi drives along a street grid from the origin to the crossing (<a>, <b>), always east or north, and
            must stop at (<c>, <d>). Count its shortest routes.
        notation: $N\bigl((0,0) \to (<c>,<d>) \to (<a>,<b>)\bigr)$, steps $\{E, N\}$
        plain: On squared paper a beetle crawls rightwards or upwards only, ending <a> columns and <b> rows from its
            start, having visited the node <c> columns and <d> rows away; count its trails.
        solution: Break the route at the prescribed point. The first stretch has <s> steps, <c> of them to the right,
            giving <x> possibilities; the second has <t> steps, <e> of them to the right, giving <y>. || Joining
            stretches, there are $<x> \cdot <y> = <answer>$ paths.
        other: Before the forced node the beetle makes <s> moves and only their horizontal places count, so <x> trails
            get there. Afterwards <t> moves remain, which can be ordered in <y> ways. || Every early part fits every
            late part, hence <answer> trails.
        terse: $\binom{<s>}{<c>} \to <x>$; $\binom{<t>}{<e>} \to <y>$; || $<x> \times <y> = <answer>$ routes.
        lemma: Exactly <x> monotone paths join the origin with (<c>, <d>), one for each placement of the right steps
            among <s>.
        method: Cut each route at (<c>, <d>), enumerate both portions with binomial coefficients, and multiply.
        subcase: Without any compulsory stop the grid admits <total> monotone routes to (<a>, <b>); those that pass
            through the stop still have to be singled out.
        general: Monotone grid routes are words in two letters; a compulsory node splits the word, so the numbers of
            routes before and after it get multiplied.
        topic: Manhattan's rectangular plan of 1811 inspired taxicab geometry, where circles look like diamonds.
            Chess rooks and ballot sequences lead toward similar diagrams.
        changed: How many lattice paths with unit steps right and up lead from (0, 0) to (<a>, <b>) and avoid the point
            (<c>, <d>)?
        altered: From all <total> routes we delete those visiting the forbidden crossing and keep <alt>.
        error: A route consists of an early and a late stretch, therefore the possibilities add up:
            $<x> + <y> = <wrong>$ paths in total.
        """),
    Family("divisible_by_either", {"n": (300, 6000), "g": (1, 6), "u": (2, 9), "v": (3, 13)}, _either,
           shown=_lcm_shown, allowed=lambda n, a, b, l: a < b and b % a and n > l
           and all(not (l % d == 0 and d % a == 0 and d % b == 0) for d in range(b, l)), text=r"""
        ask: How many integers from 1 to <n> are divisible by <a> or by <b>? (Note that [<a>, <b>] is <l>.)
        ask: Count the members of {1, 2, …, <n>} having <a> or <b>, numbers with least common multiple <l>, among their
            divisors.
        notation: $|A_{<a>} \cup A_{<b>}|$ for $A_d = d\mathbb{Z} \cap [1, <n>]$, with $A_{<a>} \cap A_{<b>} = A_{<l>}$
        plain: Lamps are numbered up to <n>; a child switches on each lamp whose label <a> divides or <b> divides, where
            both divide precisely the multiples of <l>. How many lamps shine?
        solution: There are $\lfloor <n>/<a> \rfloor$, that is <x>, multiples of the first and $\lfloor <n>/<b> \rfloor$,
            that is <y>, of the second number. Multiples of <l> were counted twice; there are <z> of them. || Inclusion
            and exclusion leave $<x> + <y> - <z> = <answer>$ integers.
        other: The label <a> divides <x> of the numbers and <b> divides <y>. Both tallies contain the <z> numbers
            belonging to the sequence of <l>. || Correcting for this double tally, <answer> lamps are burning.
        terse: $|A_{<a>}| = <x>$, $|A_{<b>}| = <y>$, $|A_{<l>}| = <z>$; || $<x> + <y> - <z> = <answer>$.
        lemma: An integer lies in both classes precisely when <l> divides it, and up to <n> this happens <z> times.
        method: Add the multiples of <a> and of <b> not exceeding <n>, then take away the overlap formed by the
            multiples of <l>.
        subcase: Considering divisibility by <a> only, the range up to <n> contains <x> suitable integers; the other
            divisor waits for later.
        general: The size of a union of two sets is the sum of their sizes minus the size of the overlap, and for
            multiples the overlap consists of multiples of the lcm.
        topic: Daniel da Silva and Sylvester popularised the sieve principle in the nineteenth century. Venn's circles
            give every schoolbook its favourite drawing of overlapping classes.
        changed: How many integers from 1 to <n> are divisible neither by <a> nor by <b>? (Note that [<a>, <b>] is <l>.)
        altered: Taking the complement of the union inside the whole range, <alt> integers escape both divisors.
        error: Multiples of <a> and multiples of <b> are simply collected, so $<x> + <y> = <wrong>$ integers have the
            property.
        """),
    Family("league_matches", {"n": (4, 20), "m": (4, 20), "s": (2, 6), "t": (1, 5)}, _league,
           allowed=lambda n, m, s, t: s != t, text=r"""
        ask: A league has an eastern group of <n> teams and a western group of <m>. Teams of one group meet <s> times,
            teams of different groups <t> times. How many matches are played?
        ask: Chess players of two cities, <n> against <m> strong, hold a tournament: any two from one city play <s>
            games, any two from opposite cities <t>. What is the number of games?
        notation: $<s>\,(|E(K_{<n>})| + |E(K_{<m>})|) + <t>\,|E(K_{<n>,<m>})|$
        plain: In a big family reunion <n> relatives come by train and <m> by car; fellow passengers hug <s> times,
            others hug <t> times. How many hugs take place?
        solution: Inside the groups there are <east> and <west> pairs, each meeting <s> times:
            $<s> \cdot (<east> + <west>) = <inside>$. Across groups we find $<n> \cdot <m> = <cross>$ pairs. || The
            season therefore counts $<inside> + <t> \cdot <cross> = <answer>$ matches.
        other: Pairs within the bigger picture split into <east> plus <west> homogeneous ones and <cross> mixed ones.
            Homogeneous pairs account for <inside> encounters and mixed pairs for <outside>. || Altogether the programme
            consists of <answer> encounters.
        terse: $e = <east> + <west>$, $c = <cross>$; $<s>e \to <inside>$, $<t>c \to <outside>$ || $\Rightarrow
            \Sigma = <answer>$.
        lemma: Group-internal fixtures number $<s> \cdot (<east> + <west>) = <inside>$, because $n(n-1)/2$ pairs exist
            inside a group.
        method: Separate the pairs into those sharing a group, weighted by <s>, and those from both groups, weighted by
            <t>.
        subcase: Fixtures across the two groups alone amount to $<t> \cdot <cross> = <outside>$; home fixtures are
            missing from this figure.
        general: Round-robin counts are edge counts of complete graphs: each group contributes half of size times size
            minus one, two groups contribute the product of sizes across.
        topic: Kirkman's schoolgirls and Berger tables show how old fixture lists are. Graph theorists colour edges to
            schedule rounds without clashes.
        changed: A league has an eastern group of <n> teams and a western group of <m>. Teams of one group meet <s>
            times, teams of different groups, who would meet <t> times, are cancelled. How many matches are played?
        altered: Since cross fixtures vanish, only the internal ones survive, being <alt>.
        error: Every one of the teams faces all its group rivals <s> times, and adding this over teams plus the cross
            fixtures makes <wrong>.
        """),
    Family("sock_drawer", {"r": (12, 60), "b": (12, 60), "g": (12, 60), "k": (3, 11)}, _drawer, text=r"""
        ask: A drawer holds <r> red, <b> blue and <g> green socks. How many must be taken in the dark to be sure of <k>
            socks of one colour?
        ask: An opaque bag contains <r> red, <b> blue, <g> green counters. Find the smallest sample that guarantees <k>
            counters of equal colour.
        notation: $\min\{N : \forall S \subseteq R_{<r>} \sqcup B_{<b>} \sqcup G_{<g>},\ |S| = N \Rightarrow
            \exists\, <k>\text{ monochromatic}\}$
        plain: Blindfolded, you pull sweets from a jar with <r> cherry, <b> berry and <g> mint pieces; when can you first
            be certain that <k> taste alike?
        solution: With bad luck we draw <h> socks of every colour, $3 \cdot <h> = <most>$ socks, and still lack the
            required <k>; there is enough stock for that. || Any further sock completes some colour, so
            $<most> + 1 = <answer>$ draws are necessary and sufficient.
        other: The unluckiest sequence hands out just <h> of each flavour, exhausting <most> pulls without success. || The
            pull after that can no longer dodge, and certainty arrives at pull number <answer>.
        terse: $3(<k> - 1) = <most>$ avoidable || $\Rightarrow N = <answer>$ by Dirichlet.
        lemma: A sample of <most> socks need not succeed: take <h> from each of the three colours.
        method: Imagine the adversary who keeps every colour at <h>, one below the target <k>, and see when he must give
            in.
        subcase: Were there red and blue only, the adversary could resist for $2 \cdot <h> = <two>$ draws; the green
            stock of <g> is disregarded.
        general: The pigeonhole principle for a guaranteed batch of equal colour: let each colour stop one short of the
            target, then add a single object.
        topic: Dirichlet spoke of drawers, hence the German Schubfachprinzip. Two Londoners with equally many hairs on
            their heads must exist by similar reasoning.
        changed: A drawer holds <r> red, <b> blue and <g> green socks. How many must be taken in the dark to be sure of
            <k> red socks?
        altered: All <bg> socks of foreign colours may come first, then the reds, so certainty needs <alt> draws.
        error: Three colours and a target of <k> per colour require $3 \cdot <k> = <wrong>$ draws, for only then every
            colour is complete.
        """),
)
