"""The relations that multi-hop questions are chained from: how a page states each, and the near misses that a standard rejects.

In the sentences `{s}` is the subject, `{o}` the object that answers, `{x}` another thing of the object's kind, `{y}` another of
the subject's, `{year}` the year of the fact and `{later}` another year.
"""

from typing import NamedTuple


class Relation(NamedTuple):
    """A hop from a thing of one kind to a thing of another; `misses` name their kind, each with one sentence."""

    domain: str
    range: str
    ask: str
    noun: str  # how a further hop speaks of the object
    must_state: str
    near_miss: str
    states: tuple[str, ...]
    misses: dict[str, str]


RELATIONS = {
    "founder": Relation(
        "institute", "person", "Who founded {s}?", "the founder of {s}",
        "The page says that {o} founded {s}.",
        "A namesake or another founder, a founding that was only planned, {o} and {s} in one sentence without the founding.",
        ("{s} was founded in {year} by {o}.",
         "In {year} {o} founded {s} with a gift from an aunt.",
         "{o} is remembered as the founder of {s}, which opened in {year}.",
         "It was {o} who set up {s}, in the spring of {year}.",
         "The founding deed of {s}, dated {year}, bears one name, that of {o}."),
        {"namesake": "{s} was founded in {year} by {x}, whom the catalogues confuse with {o}.",
         "planned": "In {year} {o} meant to found {s}, but fell ill before any deed was signed.",
         "elsewhere": "{o} founded {y} in {year} and came to {s} as a guest only.",
         "mention": "{s} and {o} both have a line in the almanac of {year}."},
    ),
    "editor": Relation(
        "journal", "person", "Who was the first editor of {s}?", "the first editor of {s}",
        "The page says that {o} was the first editor of {s}.",
        "A later editor, an editor of another journal, {o} as an author or a printer of {s}.",
        ("The first editor of {s} was {o}, who took the chair in {year}.",
         "{s} began in {year} under its first editor, {o}.",
         "In {year} {o} became the first editor of {s}.",
         "Before anyone else {o} edited {s}, from its first number in {year}."),
        {"later": "{o} edited {s} from {later}, as the third to do so.",
         "namesake": "The first editor of {s} was {x}, a cousin of {o}.",
         "elsewhere": "{o} was the first editor of {y} and wrote twice for {s}.",
         "mention": "A letter of {year} by {o} was printed in {s}."},
    ),
    "director": Relation(
        "observatory", "person", "Who directed {s} in {year}?", "the person who directed {s} in {year}",
        "The page says that {o} directed {s} in {year}, or over years that hold {year} by name.",
        "Another year, a deputy, a directorship that was offered and declined.",
        ("In {year} {s} was directed by {o}.",
         "The director of {s} in {year} was {o}.",
         "{o} directed {s} in {year}, the year of the great comet.",
         "A staff list of {year} gives {o} as director of {s}."),
        {"another year": "{o} directed {s} in {later}, by which time the dome was closed.",
         "deputy": "In {year} {o} was deputy to {x}, who directed {s}.",
         "planned": "The chair of {s} was offered to {o} in {year} and declined."},
    ),
    "composer": Relation(
        "opera", "person", "Who composed {s}?", "the composer of {s}",
        "The page says that {o} composed {s}.",
        "The writer of the words, a conductor, a plan for music, a work of another name.",
        ("{s} was composed by {o} and first sung in {year}.",
         "{o} composed {s} in {year}, within nine weeks.",
         "The music of {s} is by {o}, who finished it in {year}.",
         "With {s}, first heard in {year}, the composer {o} left the church style behind."),
        {"words": "{o} wrote the words of {s} in {year}; the music is lost.",
         "planned": "{o} promised the music of {s} for {year} and never wrote a bar of it.",
         "elsewhere": "{o}, the composer of {y}, walked out of {s} in {year}.",
         "mention": "{s} was on the bill in {year}, and so were songs by {o}."},
    ),
    "designer": Relation(
        "bridge", "person", "Who designed {s}?", "the designer of {s}",
        "The page says that {o} designed {s}.",
        "A design that was not built, a repair, a namesake.",
        ("{s} was designed by {o} and opened in {year}.",
         "{o} designed {s}, whose last stone was laid in {year}.",
         "The drawings for {s}, accepted in {year}, are by {o}.",
         "Of the works of {o} the best known design is {s}, of {year}."),
        {"planned": "A design for {s} by {o} came second in {year} and was not built.",
         "repair": "{o} repaired two arches of {s} in {year}.",
         "namesake": "{s} was designed by {x}, not by the better known {o}.",
         "mention": "{o} painted {s} in {year}, under a heavy sky."},
    ),
    "crossing": Relation(
        "bridge", "river", "Which river does {s} cross?", "the river crossed by {s}",
        "The page says that {s} crosses {o}.",
        "Another river, a canal or a lake, a crossing that was planned elsewhere.",
        ("{s} crosses {o} on seven arches.",
         "Since {year} {s} has carried the post road over {o}.",
         "{o} runs under {s}, built in {year}.",
         "{s} spans {o} where the bed is narrow."),
        {"planned": "A plan of {year} would have put {s} across {o}, a day to the south.",
         "elsewhere": "{s} crosses a canal, and {y} crosses {o}.",
         "mention": "Views of {s} and of {o} were sold as a pair in {year}."},
    ),
    "birth": Relation(
        "person", "town", "In which town was {s} born?", "the birth town of {s}",
        "The page says that {s} was born in {o}.",
        "A move to {o}, a relative's birth, a report that the page denies, a street named after {s}.",
        ("{s} was born in {o} in {year}.",
         "{o} is where {s} was born, in the winter of {year}.",
         "Born in {o} in {year}, {s} was the fourth of six children.",
         "The register of {o} has the birth of {s} under {year}."),
        {"moved": "{s} moved to {o} in {year}, at the age of nine.",
         "namesake": "An uncle of the same name, {s} the elder, was born in {o}.",
         "denied": "That {s} was born in {o} is an error of {year}; the register of {x} has the entry.",
         "mention": "A street in {o} has borne the name of {s} since {year}."},
    ),
    "teacher": Relation(
        "person", "person", "Who taught {s} the violin?", "the violin teacher of {s}",
        "The page says that {o} taught {s} the violin.",
        "Another subject, a pupil in place of the teacher, a meeting, lessons that were refused.",
        ("{s} learned the violin from {o} until {year}.",
         "{o} taught {s} the violin, from {year} on.",
         "The violin lessons of {s} were given by {o}.",
         "From {year} the violin pupils of {o} included {s}."),
        {"reversed": "{s} taught {o} the violin in {year}.",
         "subject": "{o} taught {s} Latin in {year}, and {x} the violin.",
         "refused": "In {year} {o} refused to take {s} as a violin pupil.",
         "mention": "{s} and {o} shared a box at the theatre in {year}."},
    ),
    "doctorate": Relation(
        "person", "university", "At which university did {s} take a doctorate?", "the doctoral university of {s}",
        "The page says that {s} took a doctorate at {o}.",
        "An honorary degree, a first degree, a post, studies broken off.",
        ("{s} took a doctorate at {o} in {year}.",
         "In {year} {o} made {s} a doctor, for a thesis on tides.",
         "The doctoral thesis of {s} was accepted by {o} in {year}.",
         "{s} left {o} as a doctor in {year}."),
        {"honorary": "{o} gave {s} an honorary degree in {year}.",
         "broken off": "{s} was enrolled at {o} until {year} and left without a degree.",
         "post": "{s} lectured at {o} from {year}, with a doctorate of {x}."},
    ),
    "river": Relation(
        "town", "river", "Which river flows through {s}?", "the river of {s}",
        "The page says that {o} flows through {s}.",
        "A lake of that name, a course that was planned, a river that passes the town at a distance.",
        ("{o} flows through {s}.",
         "{s} is built on both banks of {o}.",
         "{o} divides {s} into an upper and a lower half.",
         "Through the middle of {s} runs {o}, walled in {year}."),
        {"lake": "{s} lies on a lake that bears the name of {o}, which is a river elsewhere.",
         "planned": "A plan of {year} to lead {o} through {s} was never carried out.",
         "distance": "{o} passes a day's walk north of {s}, and {x} to the south.",
         "mention": "{s} and {o} are printed in the same red on the map of {year}."},
    ),
    "seat": Relation(
        "university", "town", "In which town does {s} stand?", "the seat of {s}",
        "The page says that {s} stands in {o}.",
        "A move that was planned and not made, a branch, a namesake.",
        ("{s} stands in {o}.",
         "Since {year} the home of {s} has been {o}.",
         "The lecture halls of {s} are in {o}, in a former mill.",
         "{o} is known for {s}, which has stood there since {year}."),
        {"planned": "In {year} the senate voted to move {s} to {o}, but the move was called off.",
         "branch": "{s} of {x} kept a reading room in {o} until {year}.",
         "mention": "Students of {s} rowed against a crew from {o} in {year}."},
    ),
    "mouth": Relation(
        "river", "lake", "Into which lake does {s} empty?", "the lake at the mouth of {s}",
        "The page says that {s} empties into {o}.",
        "A canal that was planned, the source in place of the mouth, another river's mouth.",
        ("{s} empties into {o}.",
         "After ninety miles {s} reaches {o} and ends there.",
         "{o} takes in {s} at its eastern shore.",
         "The mouth of {s} is on {o}, by a lighthouse of {year}."),
        {"planned": "A canal planned in {year} was to join {s} to {o}.",
         "source": "{s} rises near {o} and flows away from it, to {x}.",
         "elsewhere": "{y} empties into {o}, as {s} does not.",
         "mention": "Ice closed both {s} and {o} in the winter of {year}."},
    ),
    "mayor": Relation(
        "town", "person", "Who was mayor of {s} in {year}?", "the mayor of {s} in {year}",
        "The page says that {o} was mayor of {s} in {year}.",
        "Another year, a candidate who lost, the mayor of another town.",
        ("In {year} the mayor of {s} was {o}.",
         "{o} was mayor of {s} in {year}.",
         "The roll of mayors of {s} has {o} for {year}.",
         "As mayor of {s} in {year}, {o} had the gates taken down."),
        {"another year": "{o} was mayor of {s} in {later}, not before.",
         "lost": "{o} stood for mayor of {s} in {year} and lost to {x}.",
         "elsewhere": "{o} was mayor of {y} in {year} and had a house in {s}."},
    ),
}

# The chains, by hops: each relation's range is the next one's domain.
CHAINS = {
    2: (("founder", "birth"), ("composer", "teacher"), ("crossing", "mouth"), ("director", "doctorate")),
    3: (("founder", "birth", "river"), ("composer", "doctorate", "seat"), ("editor", "teacher", "birth"), ("designer", "birth", "mayor")),
    4: (("editor", "birth", "river", "mouth"), ("director", "doctorate", "seat", "river"), ("composer", "teacher", "birth", "river")),
}
