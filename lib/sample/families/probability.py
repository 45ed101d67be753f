"""Probability with exact fractions: urns, dice, trials, expectations, causes."""

from fractions import Fraction
from math import comb

from lib.sample.families.family import Family


def _urn(r, b):
    x, y, z = comb(r, 2), comb(b, 2), comb(r + b, 2)
    return dict(answer=Fraction(x + y, z), x=x, y=y, z=z, n=r + b, same=x + y, wrong=Fraction(r * r + b * b, (r + b) ** 2),
                alt=Fraction(r * b, z))


def _dice(m, n, s):
    low, high = max(1, s - n), min(m, s - 1)
    return dict(answer=Fraction(high - low + 1, m * n), low=low, high=high, hits=high - low + 1, all=m * n,
                wrong=Fraction(1, m + n - 1), alt=Fraction(m * n - (high - low + 1), m * n))


def _trials(a, b, n):
    miss = b - a
    return dict(answer=1 - Fraction(miss, b) ** n, miss=miss, failures=miss**n, total=b**n, wins=b**n - miss**n,
                wrong=Fraction(n * a, b), alt=Fraction(a, b) ** n)


def _expected(n, a, b):
    return dict(answer=Fraction(a * (n + 1), 2) + Fraction(b, n), base=Fraction(a * (n + 1), 2), extra=Fraction(b, n),
                n1=n + 1, twice=a * (n + 1), wrong=Fraction(a * (n + 1), 2) + b, alt=Fraction(a * (n + 1), 2))


def _bayes(a, x, b, y):
    return dict(answer=Fraction(a * x, a * x + b * y), ax=a * x, by=b * y, all=a * x + b * y, wrong=Fraction(x, x + y),
                alt=Fraction(b * y, a * x + b * y))


FAMILIES = (
    Family("urn_same_colour", {"r": (3, 40), "b": (3, 40)}, _urn, text=r"""
        ask: An urn contains <r> red and <b> blue balls. Two balls are drawn without replacement; what is the probability
            that they have the same colour?
        ask: From <r> white and <b> black pearls two are picked at once at random. Find the chance of a monochrome pair.
        notation: $P(X \in \{0, 2\})$ for $X \sim \mathrm{Hyp}(<r>, <b>; 2)$
        plain: A class of <r> girls and <b> boys sends two pupils chosen by lot; how likely are both girls or both boys?
        solution: There are <z> equally likely pairs among the $<r> + <b> = <n>$ balls. Of these, <x> consist of red balls
            and <y> of blue balls. || The probability is $(<x> + <y>)/<z>$, in lowest terms <answer>.
        other: The lot selects among <z> possible pairs. Girls can be paired with girls in <x> manners and boys with boys
            in <y> manners, together <same>. || Comparing favourable with possible pairs, the likelihood is <answer>.
        terse: $|\Omega| = <z>$, $<x> + <y> = <same>$ || $\Rightarrow P = <answer>$.
        lemma: Red pairs can be formed in $<r> \cdot (<r> - 1)/2 = <x>$ ways, irrespective of the <b> blue balls.
        method: Split the event by colour into pairs inside the <r> and pairs inside the <b>, and compare with all
            unordered pairs.
        subcase: Two blue balls appear in <y> of the <z> pairs; the red colour, of which <r> balls exist against <b>, is
            not covered.
        general: When drawing two objects from two classes, the chance of equal class is the sum of within-class pairs
            divided by all pairs.
        topic: Jacob Bernoulli filled imaginary urns with pebbles in the Ars conjectandi. Opinion pollsters sample without
            returning anybody.
        changed: An urn contains <r> red and <b> blue balls. Two balls are drawn without replacement; what is the
            probability that they have different colours?
        altered: Mixed pairs are products of both class sizes, and the reduced quotient is <alt>.
        error: Colours of consecutive draws are independent, so squares of the shares are added, and the result simplifies
            to <wrong>.
        """),
    Family("two_dice", {"m": (6, 30), "n": (6, 30), "s": (5, 45)}, _dice,
           allowed=lambda m, n, s: m != n and s + 2 < m + n, text=r"""
        ask: Two fair dice, one with faces 1 to <m> and one with faces 1 to <n>, are thrown. What is the probability that
            the faces total <s>?
        ask: A spinner shows 1, …, <m> uniformly, another 1, …, <n>. How probable is the sum <s>?
        notation: $\Pr[U_{<m>} + U_{<n>} = <s>]$, $U_k$ uniform on $\{1, \dots, k\}$
        plain: Tickets labelled up to <m> lie in one hat, tickets labelled up to <n> in a second hat; drawing from both,
            how likely do the labels add to <s>?
        solution: Let the first die show i; then the second must show $<s> - i$. This is possible exactly when i lies
            between <low> and <high>, giving <hits> favourable throws of $<m> \cdot <n> = <all>$. || The probability
            equals <hits> over <all>, i.e. <answer>.
        other: Pair each label of the first hat with its complement to <s>. The complement exists in the second hat for
            labels from <low> to <high>, and these are <hits> labels. || Measured against <all> equally likely
            combinations, the likelihood becomes <answer>.
        terse: $i \in [<low>, <high>]$, $\# = <hits>$, $|\Omega| = <all>$ || $\Rightarrow \Pr = <answer>$.
        lemma: The total <s> arises only for first faces from <low> to <high>, because neither die may exceed <m> or <n>
            respectively.
        method: Mark the antidiagonal belonging to <s> in the <m> × <n> table of outcomes and count its cells.
        subcase: For a single first face, say <low>, the matching second face is unique, so its contribution is one
            throw in $<m> \cdot <n> = <all>$; other faces leading to <s> are omitted.
        general: The sum of two independent uniform variables takes a value with probability proportional to the number of
            cells on an antidiagonal of the outcome table.
        topic: Galileo explained to gamblers why ten beats nine with three cubes. Sicherman's strange labels imitate an
            ordinary pair.
        changed: Two fair dice, one with faces 1 to <m> and one with faces 1 to <n>, are thrown. What is the probability
            that the faces do not total <s>?
        altered: The complementary event leaves all remaining cells, with probability <alt>.
        error: The totals range from two upward and are $<m> + <n> - 1$ in number, all equally likely, thus each has
            probability <wrong>.
        """),
    Family("at_least_once", {"a": (1, 9), "b": (3, 20), "n": (2, 4)}, _trials,
           allowed=lambda a, b, n: a < b - 1, text=r"""
        ask: An experiment succeeds with probability <a>/<b>. What is the probability of at least one success in <n>
            independent repetitions?
        ask: A marksman hits with chance <a> in <b>. He shoots <n> times independently; how probable is one hit or more?
        notation: $1 - \mathrm{Bin}(<n>, <a>/<b>)(\{0\}) = {?}$
        plain: Out of every <b> seeds of a kind <a> sprout on average. Someone sows <n> of them; how likely is it that not
            all fail?
        solution: Pass to the complement. A single repetition fails with probability $(<b> - <a>)/<b>$, and
            $<b> - <a> = <miss>$, so failure throughout has probability <failures> over <total>. || Hence at least one
            success occurs with probability $(<total> - <failures>)/<total>$, which is <answer>.
        other: It is simpler to look at total disappointment: of <total> equally weighted patterns, <failures> contain
            nothing but failing seeds. || Some seed sprouts in the other <wins> patterns, so the likelihood is <answer>.
        terse: $q^{<n>} = <failures>/<total>$, $q = <miss>/<b>$ || $\Rightarrow 1 - q^{<n>} = <answer>$.
        lemma: All <n> repetitions fail together with probability $<failures>/<total>$, the single failure having odds
            <miss> in <b>.
        method: Compute how likely <n> failures in a row are, each of chance one minus <a>/<b>, and subtract from
            certainty.
        subcase: For a lone repetition the failure share is $<b> - <a> = <miss>$ in <b>; more repetitions, up to <n>, have
            not been combined here.
        general: Events of the type at least once are handled through the complement: multiply the failure probabilities of
            independent trials and subtract from unity.
        topic: The Chevalier de Méré wondered about sixes in several throws and asked Pascal. Redundant servers trust the
            same arithmetic.
        changed: An experiment succeeds with probability <a>/<b>. What is the probability of success in all <n> of <n>
            independent repetitions?
        altered: Multiplying the success chances of every repetition produces <alt>.
        error: Chances of the <n> repetitions accumulate, so we add them up and state $<n> \cdot <a>/<b>$, i.e. <wrong>.
        """),
    Family("expected_prize", {"n": (4, 40), "a": (2, 30), "b": (3, 90)}, _expected, text=r"""
        ask: A fair wheel shows 1 to <n>. One wins <a> euros times the number shown, and <b> euros extra if it shows <n>.
            What is the expected win in euros?
        ask: Compute the mean payoff of a lottery in which a uniform number K from 1, …, <n> pays <a>K, plus a bonus <b> in
            the case K = <n>.
        notation: $\mathbb{E}[<a>K + <b>\cdot\mathbf{1}_{\{K = <n>\}}]$, $K \sim \mathcal{U}\{1, \dots, <n>\}$
        plain: A raffle drum holds numbers up to <n>; each number brings <a> coins per point and the topmost brings <b>
            coins in addition. How many coins does a ticket bring on average?
        solution: Linearity of expectation separates both sources. The mean of the number shown is $<n1>/2$, contributing
            <base> euros in the mean. || The extra has mean $<b>/<n>$, so the total expectation is <answer>.
        other: An average number lies halfway between the extremes, so the point part brings twice on average <twice>,
            that is <base> coins. The supplement is paid once in <n> draws and is worth <extra>. || Together a ticket
            brings <answer>.
        terse: $<a>\,\mathbb{E}K = <base>$, $<b>/<n> \to <extra>$; || $\mathbb{E} = <answer>$.
        lemma: The plain part of the payoff, <a> euros per point on a wheel up to <n>, has expectation <base>.
        method: Use linearity: treat the proportional payoff with factor <a> and the rare supplement <b> of chance one in
            <n> independently.
        subcase: Looking at nothing but the supplement, <b> paid once in <n> cases, the mean is <extra>; the proportional
            payoff is disregarded.
        general: Expectations add whether or not variables are independent; a uniform number averages to the midpoint, an
            indicator to its probability.
        topic: Huygens valued chances as fair prices in 1657. Insurers and casinos still quote expectations when setting
            premiums or stakes.
        changed: A fair wheel shows 1 to <n>. One wins <a> euros times the number shown, and the extra <b> is withdrawn.
            What is the expected win in euros?
        altered: Only the proportional payoff survives, whose mean is <alt>.
        error: The extra belongs to the payoff and must be added in full to the mean number part, giving <wrong>.
        """),
    Family("which_machine", {"a": (20, 400), "x": (1, 9), "b": (20, 400), "y": (1, 9)}, _bayes,
           allowed=lambda a, x, b, y: x != y and a != b, text=r"""
        ask: Machine A makes <a> screws a day of which <x> percent are faulty, machine B makes <b> of which <y> percent are
            faulty. A screw of the day is faulty; with what probability does it come from A?
        ask: Given that a randomly caught bad egg comes from farm A (<a> eggs, <x>% bad) or farm B (<b> eggs, <y>% bad),
            compute the conditional probability of farm A.
        notation: $P(A \mid F)$ for $P(A):P(B) = <a>:<b>$, $P(F|A) = <x>\%$, $P(F|B) = <y>\%$
        plain: Printer one issues <a> sheets, <x> in a hundred smudged, and printer two issues <b> sheets, <y> in a hundred
            smudged. Somebody holds a smudged sheet; how likely was it printer one?
        solution: Bayes' rule compares the two sources of faults. They are in the proportion $<a> \cdot <x> = <ax>$ to
            $<b> \cdot <y> = <by>$. || So the conditional probability of A is $<ax>/(<ax> + <by>)$, reduced <answer>.
        other: Scaled by a hundred, the smudged sheets of the former printer weigh <ax> and those of the latter weigh <by>,
            making <all> in all. || The former printer's share among the smudged sheets is accordingly <answer>.
        terse: $w_A = <ax>$, $w_B = <by>$, $w_A + w_B = <all>$ || $\Rightarrow P(A|F) = <answer>$.
        lemma: Faulty output of A and faulty output of B stand in the ratio <ax> to <by>, as
            $<a> \cdot <x> = <ax>$ and $<b> \cdot <y> = <by>$.
        method: Weight each source by output times fault rate, here <a> with <x> and <b> with <y>, then normalise the
            weights.
        subcase: The joint weight of faulty items from B is $<b> \cdot <y> = <by>$; A, with <a> at rate <x>, has not been
            compared.
        general: To infer a cause from its effect, multiply prior shares by likelihoods and normalise; that is Bayes' rule
            in odds form.
        topic: Reverend Bayes left an essay that Price published in 1763. Doctors interpreting positive screenings fall
            into base-rate traps.
        changed: Machine A makes <a> screws a day of which <x> percent are faulty, machine B makes <b> of which <y> percent
            are faulty. A screw of the day is faulty; with what probability does it come from B?
        altered: The rival source takes the complementary share, namely <alt>.
        error: Only fault rates count for blaming, therefore A carries $<x>/(<x> + <y>)$, in lowest terms <wrong>.
        """),
)
