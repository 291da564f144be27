"""Finds exceptions from the rules for words. tools/check-words describes the comments in which they stand."""
import re


class Exceptions:
    """The exceptions that stand in a tree."""
    pattern = re.compile(r'(?:^|(?<=\s))(?://+!?|#|/\*+|\*|<!--) *words-allow(-file)? "([^"]*)"(:?)[ \t]*(?:-->)?(\S?)', re.M)

    def __init__(self, tree):
        self.tree, self.of_file, self.used = tree, {}, set()

    def of(self, file):
        """Returns the exceptions of a file: (line, whether it is for the whole file, word, whether it has a reason)."""
        if file not in self.of_file:
            path = self.tree / file
            text = path.read_text(errors="replace") if path.is_file() else ""
            self.of_file[file] = [(text.count("\n", 0, at.start()) + 1, bool(at[1]), at[2].lower(), bool(at[3] and at[4]))
                                  for at in self.pattern.finditer(text)]
        return self.of_file[file]

    def has(self, finding):
        """Returns whether an exception permits a finding, and notes that it is needed."""
        first, last = finding.item.line - 1, finding.item.line + finding.item.text.count("\n")
        for line, whole, word, reason in self.of(finding.file):
            if reason and word == " ".join(finding.match.lower().split()) and (whole or first <= line <= last):
                self.used.add((finding.file, line))
                return True
        return False

    def faults(self, unused):
        """Yields the exceptions without a reason, and those that nothing needs."""
        for file, those in self.of_file.items():
            for line, _, word, reason in those:
                if not reason:
                    yield f'{file}:{line}: error: exception: words-allow "{word}" has no reason; write one after a colon'
                elif unused and (file, line) not in self.used:
                    yield f'{file}:{line}: error: exception: nothing here says "{word}"; remove words-allow'
