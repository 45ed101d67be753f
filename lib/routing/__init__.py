"""Which judge each candidate pair goes to, and why.

A pair is written once for each judge it is sent to (an intent), with its stage and the
reason. LLM intents to a query's own source page are written and withdrawn: the page
keeps its rank and its pick place, and is judged once, before retrieval.
"""

from lib.routing.agreement import route_arbiter, route_second
from lib.routing.coverage import check_coverage
from lib.routing.gaps import route_gaps
from lib.routing.intents import RoutingError
from lib.routing.probe import route_probe
from lib.routing.v1 import route_source_pages, route_v1
from lib.routing.v2 import route_v2

__all__ = [
    "RoutingError", "check_coverage", "route_arbiter", "route_gaps", "route_probe", "route_second", "route_source_pages", "route_v1", "route_v2",
]
