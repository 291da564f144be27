"""Finds out which modules of a Rust crate use which other modules, for tools/check-layers.

A module is a file. A module uses another module if it names an item of that module, by `use` or by a path
that begins with `crate`, `super` or `self`. Items that a module re-exports count for the module that
defines them. Tests inside a file (`#[cfg(test)] mod ... {}`) and comments are ignored.
"""
import re

a_use = r"\buse\s+([^;]+);"


def without_comments_and_tests(text):
    """Returns the text without comments and tests, with the same number of lines."""
    text = re.sub(r"//[^\n]*", "", text)
    while test := re.search(r"#\[cfg\([^\]]*\btest\b[^\]]*\)\]\s*mod \w+ \{", text):
        depth, end = 1, test.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[:test.start()] + "\n" * text.count("\n", test.start(), end) + text[end:]
    return text


def split_at_commas(tree):
    parts, depth = [""], 0
    for letter in tree:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


def paths_of_use(tree, before=()):
    """Returns [(path, name)] for each item of a use declaration. For example, `a::{b, c as d}` gives a::b and a::c."""
    if group := re.fullmatch(r"\s*(.*?)\{(.*)\}\s*", tree, re.S):
        before += tuple(re.findall(r"[\w$]+", group[1]))
        return [item for part in split_at_commas(group[2]) for item in paths_of_use(part, before)]
    path, _, name = tree.partition(" as ")
    path = before + tuple(re.findall(r"[\w$*]+", path))
    return [(path, name.strip() or path[-1])]


class crate:
    def __init__(self, folder):
        self.files = {}  # path of a module, such as ("pool", "chunk"): its file
        self.texts = {}
        self.names = {}  # path of a module: {name: path to which a `use` in the module refers}
        for file in sorted(folder.rglob("*.rs")):
            module = file.relative_to(folder).with_suffix("").parts
            module = module[:-1] if module[-1] in ("mod", "lib", "main") else module
            self.files[module] = file
            self.texts[module] = without_comments_and_tests(file.read_text())
            self.names[module] = {name: path for use in re.findall(a_use, self.texts[module])
                                  for path, name in paths_of_use(use)}

    def module_of(self, here, path, depth=0):
        """Returns the module that defines the item `path` of the module `here`, or None for another crate."""
        module, path = here, list(path)
        if path[0] in ("crate", "$crate"):
            module, path = (), path[1:]
        elif path[0] == "self":
            path = path[1:]
        elif path[0] == "super":
            while path and path[0] == "super":
                module, path = module[:-1], path[1:]
        elif here + (path[0],) not in self.files and path[0] not in self.names[here]:
            return None
        while path:
            name, *rest = path
            if module + (name,) in self.files:
                module, path = module + (name,), rest
            elif (meant := self.names.get(module, {}).get(name)) and depth < 9 and meant[0] != name:
                return self.module_of(module, [*meant, *rest], depth + 1) or module
            else:
                break
        return module

    def uses(self):
        """Yields (module, line, used module) for each path that refers to another module. The root module is
        omitted, because it declares and re-exports all others."""
        for here, text in self.texts.items():
            found = [(use.start(), path) for use in re.finditer(a_use, text)
                     for path, _ in paths_of_use(use[1])]
            rest = re.sub(a_use, lambda use: re.sub(r"[^\n]", " ", use[0]), text)
            found += [(path.start(), path[0].split("::"))
                      for path in re.finditer(r"(?<![\w:$])\$?(crate|super|self)(::\w+)+", rest)]
            for start, path in found:
                module = self.module_of(here, path)
                if here and module and module != here:
                    yield here, text.count("\n", 0, start) + 1, module
