"""The expected answers of `mallard advise`, and functions that compare an advice with them."""
import re
from dataclasses import dataclass

# Strategies that differ only in their binding make the same allocator calls.
SAME = {"AS5": "AS3", "AS6": "AS4", "AS9": "AS7", "AS10": "AS8", "AS13": "AS11", "AS14": "AS12"}
WINK_OUT = ("AS4", "AS8", "AS12") # no destructor runs, so no block may outlive its call
OF_A_PLACE = ("convert", "pool", "fix") # actions whose recommendation (`card` in JSON) names a function
ACTIONS = ("convert", "pool", "switch", "set", "fix", "leave")
NEAR = 0.03 # a strategy counts too if its saving is this near to the best one


@dataclass(frozen=True)
class Expected:
    """The right answers for a program: pairs of action and strategy, and the function that the advice must name."""

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
    is_right: bool # right in action, strategy and function
    is_action_right: bool
    is_undecided: bool
    why: str # what differs, as a text for a reader


def parse(line, begin="// expected advice: "):
    """Parses `// expected advice: ACTION [STRATEGY] [or ...] [in FUNCTION]`. Returns None for any other text."""
    match = re.fullmatch(re.escape(begin) + r"(.+?)(?: in (\S+))?", line)
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
    """Returns the function that a recommendation (`card`) names, or an empty text."""
    place = card.get("region") or card.get("site") or {}
    return place.get("function") or ""


def names(function, wanted):
    """Returns whether `function`, which may have scopes and arguments, is the wanted function."""
    return re.search(rf"(?<![\w]){re.escape(wanted)}(?![\w])", function) is not None


def is_near(advice, card, strategy):
    """Returns whether the strategy, by the matrix of measured savings, saves nearly as much as the best one."""
    best = ((card.get("saving") or {}).get("total") or {}).get("saving")
    wanted = binding_apart(strategy)
    region = function_of(card)
    savings = [entry["saving"] for entry in advice.get("matrix", ())
               if entry.get("saving") is not None and binding_apart(entry["name"].split()[0]) == wanted
               and (not entry.get("region") or not region or entry["region"] == region)]
    return best is not None and bool(savings) and max(savings) >= best - NEAR


def is_level_switch(expected, advice):
    """Returns whether the first recommendation is another malloc, and an expected strategy saves about the same by
    replay. Among such equal changes, the advice recommends the change with the least work first."""
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


def winks_out_wrongly(expected, advice):
    """Returns whether the advice recommends wink-out although no expected strategy does. Such a recommendation is
    wrong for any function, because the changed program would use freed memory."""
    is_expected = any(binding_apart(strategy) in WINK_OUT for _, strategy in expected.pairs)
    return not is_expected and any(binding_apart(card.get("strategy")) in WINK_OUT for card in advice["cards"])


def judge(expected, advice):
    """Compares the first recommendation of an advice with the expected one."""
    if winks_out_wrongly(expected, advice):
        return Judged(False, False, False, "the advice recommends wink-out, which is wrong in this program")
    if is_level_switch(expected, advice):
        return Judged(True, True, False, "")
    is_undecided = advice["verdict"] == "undecided"
    card = advice["cards"][0]
    action, strategy = card["action"], binding_apart(card.get("strategy"))
    of_action = [wanted for known, wanted in expected.pairs if known == action]
    near = any(not wanted or binding_apart(wanted) == strategy or is_near(advice, card, wanted)
               for wanted in of_action)
    here = not expected.function or action not in OF_A_PLACE or names(function_of(card), expected.function)
    why = "" if of_action and near and here else f"the first recommendation is {shown(advice)}"
    return Judged(not why and not is_undecided, bool(of_action), is_undecided, why)


def shown(advice):
    """Describes the first recommendation in a few words."""
    card = advice["cards"][0]
    words = [card["action"], card.get("strategy") or card.get("allocator") or ""]
    if function_of(card):
        words.append(f"in {function_of(card)}")
    return " ".join(filter(None, words)) + (" (undecided)" if advice["verdict"] == "undecided" else "")


def row_of(followed, advice, has_figures):
    """Returns the entry of the matrix for the change in the variant of a program that follows the advice. `followed`
    contains the strategy and the function of the change. If several places have the strategy, returns the place with the largest saving. Returns
    None if no entry for the change has the wanted figures."""
    (action, strategy), = followed.pairs
    is_here = (lambda row: not row.get("region")) if action == "pool" else (lambda row: True) # a pool is for a site
    rows = [row for row in advice.get("matrix", ())
            if has_figures(row) and is_here(row) and binding_apart(row["name"].split()[0]) == binding_apart(strategy)
            and (not followed.function or names(row.get("region") or "", followed.function))]
    return max(rows, key=lambda row: row.get("saving") or 0, default=None)


def predicted(followed, advice):
    """Returns the interval in which the advice predicts the saving of the changed source, or (None, None)."""
    row = row_of(followed, advice, lambda row: row.get("expected"))
    return (row["expected"]["low"], row["expected"]["high"]) if row else (None, None)


def in_program(followed, advice):
    """Returns the saving of the change in the unchanged program, which was measured in runs with the plan in force
    and with its control, or None. Only recommendations contain this saving, which does not depend on wink-out."""
    (action, _), = followed.pairs
    for card in advice["cards"]:
        measured = (card.get("saving") or {}).get("in_program")
        is_here = not followed.function or names(function_of(card), followed.function)
        if measured and card["action"] == action and is_here:
            return measured["saving"]
    return None


def of_mallocs(advice):
    """For each malloc that is a gain in runs of the program, yields whether the measured saving is in the interval
    that the replay of the recording predicted."""
    for row in advice.get("matrix", ()):
        if row.get("measured_by") == "try" and row.get("predicted") and row.get("verdict") == "gain":
            yield is_inside(row, row["predicted"]["low"], row["predicted"]["high"])


def is_inside(measured, low, high):
    """Returns whether the measured saving is in the predicted interval."""
    return None not in (low, high, measured["saving"]) and low <= measured["saving"] <= high


def percent(share):
    return "-" if share is None else f"{100 * share:.1f} %"
