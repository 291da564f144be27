"""The expected answers of `mallard advise`, and a comparison of an advice with them."""
import re
from dataclasses import dataclass

# Strategies that differ only in binding make the same calls of an allocator.
SAME = {"AS5": "AS3", "AS6": "AS4", "AS9": "AS7", "AS10": "AS8", "AS13": "AS11", "AS14": "AS12"}
OF_A_PLACE = ("convert", "pool", "fix") # actions whose card names a function
ACTIONS = ("convert", "pool", "switch", "set", "fix", "leave")
NEAR = 0.03 # a strategy whose saving is as near to that of the best one counts too


@dataclass(frozen=True)
class Expected:
    """The right answers of a program: pairs of action and strategy, and the function of the card."""

    pairs: tuple
    function: str = ""

    @property
    def is_leave(self):
        return self.pairs == (("leave", ""),)

    def __str__(self):
        words = " or ".join(" ".join(filter(None, pair)) for pair in self.pairs)
        return f"{words} in {self.function}" if self.function else words


@dataclass(frozen=True)
class Judged:
    is_right: bool # action, strategy and function
    is_action_right: bool
    is_undecided: bool
    why: str # what differs, for a reader


def parse(line):
    """Reads `// advises: ACTION [STRATEGY] [or ...] [in FUNCTION]`. Returns None if it is something else."""
    match = re.fullmatch(r"// advises: (.+?)(?: in (\S+))?", line)
    if match is None:
        return None
    pairs, action = [], ""
    for words in match[1].split(" or "):
        first, *rest = words.split()
        if first in ACTIONS:
            action = first
        else:
            rest = [first, *rest]
        if not action or len(rest) > 1 or not all(re.fullmatch(r"AS\d+", word) for word in rest):
            return None
        pairs.append((action, rest[0] if rest else ""))
    return Expected(tuple(pairs), match[2] or "")


def binding_apart(strategy):
    return SAME.get(strategy, strategy or "")


def function_of(card):
    """Returns the function that a card names, or an empty text."""
    place = card.get("region") or card.get("site") or {}
    return place.get("function") or ""


def names(function, wanted):
    """Whether a name with scopes and arguments names the wanted function."""
    return re.search(rf"(?<![\w]){re.escape(wanted)}(?![\w])", function) is not None


def is_near(advice, card, strategy):
    """Whether the strategy saves nearly as much as the first card, by the matrix."""
    best = ((card.get("saving") or {}).get("total") or {}).get("saving")
    wanted = binding_apart(strategy)
    region = function_of(card)
    savings = [entry["saving"] for entry in advice.get("matrix", ())
               if entry.get("saving") is not None and binding_apart(entry["name"].split()[0]) == wanted
               and (not entry.get("region") or not region or entry["region"] == region)]
    return best is not None and bool(savings) and max(savings) >= best - NEAR


def is_level_switch(expected, advice):
    """Whether the first card asks for another malloc, and an expected strategy saves about the same by replay. Of
    such changes, the card of the one with the least work comes first."""
    card = advice["cards"][0]
    if card["action"] != "switch":
        return False
    of_malloc = [entry for entry in advice.get("matrix", ()) if entry["name"] == card.get("allocator")]
    savings = [entry.get("replayed") if entry.get("replayed") is not None else entry["saving"] for entry in of_malloc]
    wanted = {binding_apart(strategy) for _, strategy in expected.pairs if strategy}
    return any(entry.get("saving") is not None and binding_apart(entry["name"].split()[0]) in wanted
               and (not entry.get("region") or not expected.function or names(entry["region"], expected.function))
               and abs(entry["saving"] - saving) <= NEAR
               for entry in advice.get("matrix", ()) for saving in savings if saving is not None)


def judge(expected, advice):
    """Compares the first card of an advice with what is expected."""
    if is_level_switch(expected, advice):
        return Judged(True, True, False, "")
    is_undecided = advice["verdict"] == "undecided"
    card = advice["cards"][0]
    action, strategy = card["action"], binding_apart(card.get("strategy"))
    of_action = [wanted for known, wanted in expected.pairs if known == action]
    near = any(not wanted or binding_apart(wanted) == strategy or is_near(advice, card, wanted)
               for wanted in of_action)
    here = not expected.function or action not in OF_A_PLACE or names(function_of(card), expected.function)
    why = "" if of_action and near and here else f"the first card says {shown(advice)}"
    return Judged(not why and not is_undecided, bool(of_action), is_undecided, why)


def shown(advice):
    """Returns the first card in a few words."""
    card = advice["cards"][0]
    words = [card["action"], card.get("strategy") or card.get("allocator") or ""]
    if function_of(card):
        words.append(f"in {function_of(card)}")
    return " ".join(filter(None, words)) + (" (undecided)" if advice["verdict"] == "undecided" else "")


def predicted(expected, advice):
    """Returns the interval in which the saving of the program is expected if it follows the advice. This is the
    interval of the first card with an expected action other than a switch, since the advised form of a program has
    an allocator of its own. (None, None) if there is no such card."""
    actions = [action for action, _ in expected.pairs if action != "switch"]
    for card in advice["cards"]:
        saving = card.get("saving") or {}
        if card["action"] in actions and (interval := saving.get("expected") or saving.get("total")):
            return interval["low"], interval["high"]
    return None, None


def is_inside(measured, low, high):
    """Whether the measured saving is in the predicted interval."""
    return None not in (low, high, measured["saving"]) and low <= measured["saving"] <= high


def percent(share):
    return "-" if share is None else f"{100 * share:.1f} %"
