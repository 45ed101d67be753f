"""Word problems: tickets, pipes, trains, mixtures, clocks."""

from fractions import Fraction

from lib.sample.families.family import Family


def _tickets_shown(p, q, x, y):
    return dict(p=p, q=q, h=x + y, t=p * x + q * y)


def _tickets(p, q, h, t):
    return dict(answer=(t - q * h) // (p - q), cheap=q * h, rest=t - q * h, gap=p - q, wrong=t // p,
                alt=h - (t - q * h) // (p - q))


def _pipes(a, b):
    return dict(answer=Fraction(a * b, a + b), s=a + b, ab=a * b, wrong=Fraction(a + b, 2), alt=Fraction(a * b, b - a))


def _trains_shown(u, v, t, h):
    return dict(u=u, v=v, h=h, d=u * h + (u + v) * t)


def _trains(u, v, h, d):
    t = (d - u * h) // (u + v)
    return dict(answer=u * (h + t), ahead=u * h, rest=d - u * h, speed=u + v, t=t, total=h + t, wrong=u * (d // (u + v)),
                alt=d - u * (h + t))


def _mixture(x, p, y, q):
    return dict(answer=Fraction(x * p + y * q, x + y), xp=x * p, yq=y * q, all=x * p + y * q, n=x + y,
                wrong=Fraction(p + q, 2), alt=Fraction(x * p, x + y))


def _clock(h, m):
    hour, minute = 60 * h + m, 12 * m
    gap = abs(hour - minute)
    return dict(answer=Fraction(min(gap, 720 - gap), 2), hour=hour, minute=minute, gap=gap, h60=60 * h,
                turn=min(gap, 720 - gap), wrong=abs(30 * h - 6 * m), alt=360 - Fraction(min(gap, 720 - gap), 2))


FAMILIES = (
    Family("ticket_sale", {"p": (7, 30), "q": (2, 15), "x": (10, 400), "y": (10, 400)}, _tickets, shown=_tickets_shown,
           allowed=lambda p, q, h, t: p > q, text=r"""
        ask: Full tickets cost <p> francs and reduced tickets <q>. For <h> tickets the box office took <t> francs. How many
            full tickets were sold?
        ask: Spiders and beetles of a zoo: each large cage uses <p> lamps, each small cage <q>; <h> cages use <t> lamps
            altogether. How many large cages are there?
        notation: $x + y = <h>,\ <p>x + <q>y = <t>,\ x = {?}$ $(x, y \in \mathbb{N})$
        plain: A purse contains <h> coins, some worth <p> and the others worth <q>, making <t> in value; how many coins of
            the dearer sort does it contain?
        solution: Pretend that all tickets were reduced; the takings would be $<h> \cdot <q> = <cheap>$, which is
            $<t> - <cheap> = <rest>$ too little. Each full ticket repairs $<p> - <q> = <gap>$ of it. || So
            $<rest>/<gap> = <answer>$ full tickets were sold.
        other: With only cheap coins the purse would be worth <cheap>, so <rest> is unexplained. Swapping a cheap coin for a
            dear one gains <gap>. || The number of swaps, and of dear coins, is <answer>.
        terse: $<q> \cdot <h> = <cheap>$, $(<p> - <q>)x = <rest>$ || $\Rightarrow x = <answer>$.
        lemma: If x full tickets are among the <h>, then $<gap>x = <t> - <cheap>$, by subtracting <q> francs for everyone
            from sales at <p>.
        method: Assume false position: let every one of the <h> be of the sort <q> and distribute the deficit against <t> in
            portions, given the price <p>.
        subcase: Had nobody paid full price, <h> tickets would bring $<h> \cdot <q> = <cheap>$ francs instead of <t>; the
            price <p> is not used so far.
        general: Two-price puzzles yield to false position: assume the cheaper kind throughout, and divide the missing value
            by the price difference.
        topic: Chickens and rabbits in one cage amuse pupils since Sun Zi. Egyptian aha-calculations of the Rhind papyrus
            guess falsely on purpose.
        changed: Full tickets cost <p> francs and reduced tickets <q>. For <h> tickets the box office took <t> francs. How
            many reduced tickets were sold?
        altered: Subtracting full admissions from the audience, the reduced ones number <alt>.
        error: The takings were paid in full prices, so dividing <t> by <p> and rounding we find <wrong> full tickets.
        """),
    Family("two_pipes", {"a": (2, 60), "b": (3, 90)}, _pipes, allowed=lambda a, b: a < b, text=r"""
        ask: One pipe fills a basin in <a> hours, another in <b> hours. In how many hours do both together fill it?
        ask: Alice paints a fence in <a> days, Bob needs <b> days for it. Working side by side, how many days do they take?
        notation: $(<a>^{-1} + <b>^{-1})^{-1} = {?}$
        plain: A goat empties a meadow within <a> weeks and a sheep within <b> weeks; for how many weeks does the meadow feed
            the pair?
        solution: Per hour the pipes deliver $\frac{1}{<a>}$ and $\frac{1}{<b>}$ of the basin, jointly
            $\frac{<s>}{<ab>}$, because $<a> + <b> = <s>$ and $<a> \cdot <b> = <ab>$. || The reciprocal is the filling time,
            <answer> hours.
        other: Imagine <ab> equal meadows: the goat manages <b> of them in the time in which the sheep manages <a>, so jointly
            they manage <s>. || A single meadow therefore lasts <answer> weeks.
        terse: $1/<a> + 1/<b> = <s>/<ab>$ || $\Rightarrow T = <answer>$.
        lemma: Running jointly, both pipes fill $<s>/<ab>$ of the basin hourly, where $<a> + <b> = <s>$ and
            $<a> \cdot <b> = <ab>$.
        method: Convert the times <a> and <b> into rates, add these rates, and convert back.
        subcase: In its first hour the quick pipe supplies one part out of <a>; the slow one, with <b>, is shut in this
            consideration.
        general: Working times do not add but rates do: take reciprocals of individual times, add them, and invert once more.
        topic: Heron and Metrodorus posed fountains with several spouts. Parallel resistors and thin lenses combine
            harmonically too.
        changed: One pipe fills a basin in <a> hours, while an open drain empties it in <b> hours. In how many hours is it
            full?
        altered: Now rates are subtracted, and inverting the difference takes <alt> hours.
        error: Together they need the average of both times, that is <wrong>.
        """),
    Family("meeting_trains", {"u": (30, 140), "v": (30, 140), "t": (1, 8), "h": (1, 4)}, _trains, shown=_trains_shown,
           allowed=lambda u, v, h, d: u != v, text=r"""
        ask: Two towns are <d> km apart. A train leaves the first at <u> km/h; <h> hours later one leaves the second toward it
            at <v> km/h. How far from the first town do they meet?
        ask: Over a distance of <d> kilometres, cyclist X rides at <u> km/h and has a start of <h> h before Y comes from the
            opposite end at <v> km/h. How many kilometres has X covered at their encounter?
        notation: $s_1(t) = <u>t,\ s_2(t) = <d> - <v>(t - <h>),\ s_1 = s_2 = {?}$
        plain: Ships A and B are <d> miles asunder. A sails at <u> miles an hour, B sets out <h> hours after A and approaches
            at <v> miles an hour; how many miles has A sailed when they come together?
        solution: During its head start the first train runs $<u> \cdot <h> = <ahead>$ km, leaving $<d> - <ahead> = <rest>$ km
            between them. They approach at $<u> + <v> = <speed>$ km/h and need another <t> h. || The meeting place is
            $<u> \cdot <total> = <answer>$ km from the first town.
        other: When B starts, A is already <ahead> miles on her way and <rest> miles separate the ships. The gap shrinks by
            <speed> miles hourly, so it closes in <t> hours. || By then A has been under way for <total> hours and sailed
            <answer> miles.
        terse: $<d> - <ahead> = <rest>$, $<rest>/<speed> = <t>$ || $\Rightarrow s = <u> \cdot (<h> + <t>) = <answer>$.
        lemma: At the departure of the second train, running <v> km/h, the remaining gap measures
            $<d> - <u> \cdot <h> = <rest>$ km.
        method: Deduct the head start of <h> hours at <u> from <d>, then divide by closing speed with <v> included.
        subcase: The head start alone takes the early train $<u> \cdot <h> = <ahead>$ km out of <d>; the joint motion with the
            one at <v> is still open.
        general: Opposite motions have additive speeds: remove any head start from the distance, divide by closing speed, and
            multiply back by one traveller's speed.
        topic: Von Neumann reportedly summed the fly between locomotives as a series. Timetables drawn as slanted lines go
            back to Ibry and Marey.
        changed: Two towns are <d> km apart. A train leaves the first at <u> km/h; <h> hours later one leaves the second toward
            it at <v> km/h. How far from the second town do they meet?
        altered: Measured from the opposite end, the encounter lies at <alt> km.
        error: The trains approach at $<u> + <v> = <speed>$ km/h throughout, so counting whole hours the early one covers
            <wrong> km.
        """),
    Family("mixture_percent", {"x": (2, 60), "p": (2, 45), "y": (2, 60), "q": (46, 95)}, _mixture, text=r"""
        ask: A chemist mixes <x> litres of a <p> percent acid with <y> litres of a <q> percent acid. What is the percentage of
            acid in the mixture?
        ask: <x> kg of an alloy with <p> % silver are melted together with <y> kg of an alloy with <q> % silver; find the
            silver content of the melt in percent.
        notation: $\frac{<x>\cdot<p>\% + <y>\cdot<q>\%}{<x> + <y>}$ in %
        plain: A grocer blends <x> pounds of tea costing <p> pence with <y> pounds costing <q> pence; what must a pound of the
            blend cost so that nothing is gained or lost?
        solution: In units of a hundredth litre, the acids contain $<x> \cdot <p> = <xp>$ and $<y> \cdot <q> = <yq>$ of pure
            substance; volumes add to $<x> + <y> = <n>$. || Hence the concentration in percent is
            $(<xp> + <yq>)/<n>$, i.e. <answer>.
        other: The cheap tea is worth <xp> pence, the dear tea <yq> pence, so the heap is worth <all> pence and weighs <n>
            pounds. || A pound of blend has the value <answer>.
        terse: $<xp> + <yq> = <all>$, $<x> + <y> = <n>$ || $\Rightarrow \bar{c} = <answer>$.
        lemma: The mixture contains $<xp> + <yq> = <all>$ hundredths of a litre of pure acid, stemming from <x> litres and <y>
            litres at <p> and <q> percent.
        method: Balance pure substance before and after mixing <x> at <p> with <y> at <q>, or draw the mixing cross.
        subcase: The weaker ingredient brings $<x> \cdot <p> = <xp>$ hundredths; what <y> litres at <q> percent bring is not
            stated.
        general: Concentrations mix as weighted means, the weights being amounts; pure substance is conserved and so is total
            volume.
        topic: Hallmarks on silverware and octane ratings express blends. Fibonacci devoted a chapter to consolamen, alloying
            money.
        changed: A chemist mixes <x> litres of a <p> percent acid with <y> litres of water instead of a <q> percent acid. What
            is the percentage of acid in the mixture?
        altered: Water adds volume and no substance, wherefore the content sinks to <alt>.
        error: Mixing averages the two concentrations regardless of volumes, and the midpoint is <wrong>.
        """),
    Family("clock_angle", {"h": (1, 11), "m": (1, 59)}, _clock, allowed=lambda h, m: abs(60 * h - 11 * m) > 8, text=r"""
        ask: At <m> minutes past <h> o'clock, what is the smaller angle in degrees between the hands of an analogue clock?
        ask: The big hand stands at minute <m>, the hour is <h>. How many degrees separate both hands of the watch, measured
            the short way?
        notation: $\angle(\text{hands})$ at $(h, \min) = (<h>, <m>)$, in $[0^\circ, 180^\circ]$
        plain: A tower bell struck <h> a while ago and since then <m> minutes went by; how many degrees lie between the
            pointers of the tower dial, taking the lesser opening?
        solution: In half degrees, the hour hand has advanced $60 \cdot <h> + <m> = <hour>$ and the minute hand
            $12 \cdot <m> = <minute>$ from the top. They differ by <gap> half degrees, or the short way round by <turn>. ||
            Halving, the hands enclose <answer> degrees.
        other: The slow pointer creeps half a degree each minute and stands <hour> halves from noon, the quick one covers six
            degrees each minute and stands <minute> halves away. The lesser opening thus has <turn> halves. || Expressed in
            whole degrees it is <answer>.
        terse: $\theta_h = <hour>/2$, $\theta_m = <minute>/2$, $2\Delta = <turn>$ || $\Rightarrow \Delta = <answer>^\circ$.
        lemma: The hour hand at that time points <hour> half degrees clockwise from twelve, as $60 \cdot <h> + <m> = <hour>$.
        method: Track both hands in half degrees from noon for hour <h> and minute <m>; if the gap is above a half turn, take
            its complement.
        subcase: At the full hour the hour hand alone is $60 \cdot <h> = <h60>$ half degrees from the top; <m> minutes of
            creeping are to be added.
        general: The minute hand turns six degrees a minute, the hour hand half a degree; take the absolute difference and, if
            needed, its complement to a full turn.
        topic: Advertisements like showing ten past ten because hands frame the brand. Lewis Carroll joked about stopped clocks
            being right twice daily.
        changed: At <m> minutes past <h> o'clock, what is the larger angle in degrees between the hands of an analogue clock?
        altered: The reflex opening completes the full turn and has <alt> degrees.
        error: The hour hand rests on its numeral during the hour, so the hands differ by the difference of
            $30 \cdot <h>$ and $6 \cdot <m>$, namely <wrong>.
        """),
)
