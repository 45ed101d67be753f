"""What people write around mathematics: greetings, headings, sign-offs, none of it eight words long."""

from random import Random

OPENINGS = ("Hello everybody!", "Good evening.", "From my notebook.", "Reposted from the old board.", "A classic.",
            "Seen in last week's quiz.", "Warm-up for Monday.", "Scanned and retyped, sorry for typos.",
            "My daughter's homework…", "Contest training, round two.", "Taken from a Hungarian collection.",
            "Entrance examination, Kraków.", "Olympiad corner.", "Blackboard photo, transcribed.", "Bonjour à tous,",
            "An old favourite of mine.", "From the tutorial on Thursday.", "Recitation sheet.", "Question of the day:",
            "Found between two library books.")
STATEMENTS = ("Problem.", "Exercise.", "Question.", "Task:", "Given:", "Aufgabe.", "Q:", "To do.", "Puzzle.", "")
SOLUTIONS = ("Solution.", "Answer.", "Proof.", "Here goes:", "Reply:", "Worked out:", "A:", "My attempt.", "Lösung.",
             "Écrit au propre:")
LEMMAS = ("Lemma.", "Observation.", "Remark.", "First step:", "Useful fact:", "Note.")
METHODS = ("Hint.", "Strategy.", "How to begin:", "Plan.", "Suggested route:", "Approach.")
SUBCASES = ("Special case.", "A simpler part:", "Only a part:", "Baby version.", "Partial progress.", "For a start:")
CLOSINGS = ("Thanks for reading!", "Corrections welcome.", "∎", "Best, Émile", "Edit: fixed a sign.", "— Zoë",
            "Comments are closed.", "End of note.", "Regards, Søren", "q.e.d.", "Upvote if useful.", "Next week more.",
            "Filed under: drills.", "Typeset in a hurry.", "That is all.", "— posted by M. Núñez", "See you on Friday.",
            "Last revised in spring.", "Page 2 of 2.", "")
UNANSWERED = ("Any ideas?", "I am stuck.", "Bump.", "No replies yet.", "Same question here!", "Please help, thanks.",
              "Did anybody solve this one?", "I need this for tomorrow.", "Following.", "My teacher gave no hints.",
              "This looks hard.", "I tried everything.", "What a strange exercise.", "Moderator: please add your work.",
              "Deleted by its author.", "Is there a trick?", "Nobody in class knew.", "Still waiting…")
CLAIMS = ("It is {}.", "I get {}.", "The answer is {}.", "Clearly {}.", "Back of the book: {}.", "My app says {}.",
          "{}, trust me.", "A friend told me {}.")
BASES = ("No explanation, sorry.", "I guessed.", "It just felt right.", "Do not ask me why.", "I cannot find my notes.")
EVASIONS = ("The steps are too long.", "Proof omitted.", "Saw it somewhere online.", "Follows from general nonsense.")
HEADINGS = ("Lecture notes", "Study guide", "Reader", "Chapter excerpt", "Seminar handout", "Course diary",
            "Preparation binder", "Transcript", "Skript")
SHEETS = ("Problem sheet", "Homework set", "Drill page", "Mock exam", "Übungsblatt", "Worksheet", "Test yourself")
BOOKLETS = ("Solved problems", "Model answers", "Booklet of solutions", "Answer key with details", "Corrigé",
            "Worked examples")
RETELLINGS = ("In other words:", "Picture it so.", "As a story:", "Retold:", "Or, put plainly:", "")
INTERLUDES = ("Now an example.", "Another one.", "Let us practise.", "Similarly:", "Once more.", "A variation:",
              "For comparison:", "Next specimen.", "Try this as well:", "In the same spirit:")
RETURNS = ("Back to our problem.", "Finally, the promised one:", "We can now treat:", "Main problem.", "At last:")


def pick(rng: Random, phrases: tuple[str, ...], k: int = 1) -> str:
    """k different phrases of a list, in random order, as one line."""
    return " ".join(rng.sample(phrases, k)).strip()
