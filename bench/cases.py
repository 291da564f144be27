"""Chooses the cases of a suite that Python measures."""
import re
import sys


def matching(pattern, names, suite):
    """Returns the names that match a regular expression. Exits with an error if none matches."""
    try:
        chosen = [name for name in names if re.search(pattern, name)]
        why = f"no case of {suite} matches '{pattern}'"
    except re.error as error:
        chosen, why = [], f"'{pattern}' is not a regular expression: {error}"
    if not chosen:
        print(f"{suite}: {why}\n  nothing was measured\n  help: ./x bench {suite} --list", file=sys.stderr)
        sys.exit(2)
    return chosen
