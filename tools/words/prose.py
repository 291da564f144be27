"""Extracts prose from the files in a tree, such as comments, messages, test names and commit subjects.

An Item is one comment, paragraph, message or name. Its text has as many lines as the source, and code in it is replaced by
a word of underscores, so that a linter for prose reads sentences. tree-sitter finds comments and strings.
"""
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import tree_sitter
import tree_sitter_bash
import tree_sitter_cpp
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_rust


@dataclass(frozen=True)
class Item:
    group: str
    file: str     # relative to the root of the tree
    line: int     # the first line with text
    text: str


groups = ("cpp", "rust", "tests", "names", "docs", "messages", "subjects", "functions")

# The names in a query are c for comments, s for strings, f for functions, d for docstrings, t for modules with tests, and x
# for code whose strings no user reads.
c_like = """(comment) @c (string_literal) @s (preproc_include) @x (linkage_specification value: (string_literal) @x)
            (static_assert_declaration) @x (function_definition) @f (template_declaration) @f
            (declaration declarator: (function_declarator)) @f (field_declaration declarator: (function_declarator)) @f"""
languages = {
    "cpp": (tree_sitter_cpp, c_like),
    "rust": (tree_sitter_rust, """(line_comment) @c (block_comment) @c (string_literal) @s (raw_string_literal) @s
                                  (attribute_item) @x (inner_attribute_item) @x (function_item) @f
                                  (function_signature_item) @f (mod_item name: (identifier) @n (#eq? @n "tests")) @t"""),
    "python": (tree_sitter_python, """(comment) @c (module . (expression_statement (string) @d))
                                      (class_definition body: (block . (expression_statement (string) @d)))
                                      (function_definition body: (block . (expression_statement (string) @d)))"""),
    "bash": (tree_sitter_bash, "(comment) @c"),
    "javascript": (tree_sitter_javascript, "(comment) @c"),
}
suffixes = {".hpp": "cpp", ".cpp": "cpp", ".h": "cpp", ".c": "cpp", ".cc": "cpp", ".rs": "rust", ".py": "python",
            ".sh": "bash", ".js": "javascript", ".md": "markdown"}
# Files without prose of ours, or without prose.
no_prose = {".lock", ".zst", ".jsonl", ".json", ".csv", ".ops", ".golden", ".svg", ".png", ".gz", ".xz", ".orig", ".bin", ".version", ""}

generated = re.compile(r"(?:\W*\n)*\W*(?:[^\n]{0,80}@generated|(?:This (?:file|page) (?:is|was) )?generated (?:from|by)\b)", re.I)
parsers = {}


def parser(language):
    """Returns the parser and the query of a language, which are made once."""
    if language not in parsers:
        module, query = languages[language]
        grammar = tree_sitter.Language(module.language())
        parsers[language] = tree_sitter.Parser(grammar), tree_sitter.Query(grammar, query)
    return parsers[language]


def language_of(path, text):
    """Returns the language of a file, `none` if it has no prose, or its suffix if there is no parser here for the language."""
    if path.suffix in suffixes:
        return suffixes[path.suffix]
    if shebang := re.match(r"#!.*\b(python3|bash|sh)\b", text):
        return "python" if shebang[1] == "python3" else "bash"
    return "none" if path.suffix in no_prose else path.suffix


def underscores(match):
    return re.sub(r"[^\n]", "_", match[0])


def without_code(text):
    """Replaces code and addresses in Markdown by underscores, and blanks its marks."""
    text = re.sub(r"^([ >]*)(```|~~~).*?(^\1\2|\Z)", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)
    text = re.sub(r"``[^`]+``|`[^`\n]*(?:\n[^`\n]+)?`", underscores, text)
    text = re.sub(r"\]\([^)\s]*\)|\]\[[^]\n]*\]|^ *\[[^]\n]+\]: .*", lambda m: " " * len(m[0]), text, flags=re.M)
    text = re.sub(r"\w+://[^\s)>]+|<[^<>\s]*>", underscores, text)
    return re.sub(r"^[ #>*|:-]+|[*\[\]]|(?<=\|)[ :-]+(?=\|)", lambda m: " " * len(m[0]), text, flags=re.M)


def body(comment):
    """Returns the text of a comment without its marks. It has as many lines as the comment."""
    comment = re.sub(r".*words-allow.*", "", comment)
    lines = [re.sub(r"^\s*(//+[!<]*|/\*[*!]?|\*/|\*(?!\*)|#\|?!?)(?=\s|\w|\W|$)", "", line) for line in comment.split("\n")]
    return without_code("\n".join(re.sub(r"\*/\s*$", "", line).lstrip(" ") for line in lines))


def message(literal):
    """Returns the text of a string literal, or nothing if that is no sentence for a user."""
    text = re.sub(r'^\w*#*"|"#*$', "", literal)
    text = re.sub(r"\\n", "  ", re.sub(r"\\\n\s*", "\n", re.sub(r'\\"', "'", text)))
    words = re.findall(r"(?<![\w/<.-])[A-Za-z][a-z']+(?![\w/>(=-])", text)
    if len(words) < 3 or " " not in text or re.search(r"</|[;{]\s*$|^\s*[<#@]|\bvoid\b|::\w+::|#include|\b(?:SELECT|fn|let) ", text):
        return ""
    return re.sub(r"\{[^{}]*\}|%[-\d.*]*l{0,2}[a-z]\b", underscores, without_code(text))


def comments(source, nodes):
    """Joins comments of adjacent lines. Yields (start byte, end byte, first line, whether no code precedes it there, text)."""
    run, last = [], None
    for node in nodes:
        text = node.text.decode(errors="replace").rstrip("\n")
        row, column = node.start_point
        alone = not source[node.start_byte - column:node.start_byte].strip()
        mark = re.match(r"//[/!]?|/\*|#\|?|", text)[0]
        if run and not (alone and mark != "/*" and last == (row, column, mark)):
            yield run[0][0], run[-1][1], *run[0][2:4], "\n".join(line for *_, line in run)
            run = []
        run.append((node.start_byte, node.start_byte + len(text.encode()), row + 1, alone, text))
        last = row + 1, column, mark
    if run:
        yield run[0][0], run[-1][1], *run[0][2:4], "\n".join(line for *_, line in run)


names = {"cpp": re.compile(r"^ *(?:TYPED_)?TEST(?:_[FP])?\(\s*\w+,\s*(\w+)\)", re.M),
         "rust": re.compile(r"#\[test\]\s*(?:#\[[^\n]*\]\s*|//[^\n]*\s*)*(?:pub )?fn (\w+)|^rgtest!\((\w+)", re.M),
         "python": re.compile(r"^    def test_(\w+)", re.M)}


def of_code(path, text, language):
    """Yields the items of a source file."""
    is_test = bool(re.match(r"(.*/)?(tests?|bench|benches|tools|fuzz|\.ci)/|x$|(.*/)?tests?\.rs$", path))
    for name in names[language].finditer(text) if language in names else ():
        line = text.count("\n", 0, name.end()) + 1
        yield Item("names", path, line, (name[1] or name[name.lastindex]).replace("_", " "))
    source = text.encode()
    made, query = parser(language)
    found = tree_sitter.QueryCursor(query).captures(made.parse(source).root_node)
    in_tests = [(node.start_byte, node.end_byte) for node in found.get("t", ())]
    unread = [(node.start_byte, node.end_byte) for node in found.get("x", ())] + in_tests
    functions = {node.start_byte for node in found.get("f", ())}
    nodes = sorted(found.get("c", ()), key=lambda node: node.start_byte)
    for start, end, line, alone, comment in comments(source, nodes):
        inside = is_test or any(first <= start < last for first, last in in_tests)
        group = "tests" if inside or language not in ("cpp", "rust") else language
        if re.search(r"SPDX-|Copyright|^\W*namespace [\w:]+\W*$|clang-format (on|off)|NOLINT|shellcheck |noqa", comment) or comment.startswith("#!"):
            continue
        said = body(comment)
        if not re.search(r"[a-z]{2}", said.replace("_", "")):
            continue
        yield Item(group, path, line, said)
        rest = re.match(rb"(?:\s|#\[[^\n]*\]\n|\[\[[^\]]*\]\])*", source[end:end + 2000])
        if not inside and alone and language in ("cpp", "rust") and end + rest.end() in functions:
            yield Item("functions", path, line, re.split(r"(?<=[.:;])\s", " ".join(said.split()))[0])
    for node in found.get("d", ()):
        said = without_code(re.sub(r'^\w*("""|\'\'\'|")|("""|\'\'\'|")$', "", node.text.decode()))
        yield Item("tests", path, node.start_point[0] + 1, said)
    for node in found.get("s", ()) if not is_test else ():
        if not any(first <= node.start_byte < last for first, last in unread) and (said := message(node.text.decode())):
            yield Item("messages", path, node.start_point[0] + 1, said)


def of_markdown(path, text):
    """Yields the paragraphs, list items and table lines in Markdown."""
    said, line = without_code(text).split("\n"), 0
    marks = text.split("\n")
    while line < len(said):
        end = line + 1
        while end < len(said) and said[end].strip() and not re.match(r" *([-*|#]|\d+\. )", marks[end]):
            end += 1
        if re.search(r"[a-z]{2}", "\n".join(said[line:end]).replace("_", "")):
            yield Item("docs", path, line + 1, "\n".join(said[line:end]))
        line = end


def files_of(root):
    """Returns the files that git tracks or would add, or all files outside of a repository."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "."],
                            capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [root / file for file in dict.fromkeys(listed.stdout.rstrip("\0").split("\0"))]
    return sorted(file for file in Path(root).rglob("*") if file.is_file())


def items_of(root, files, unknown, unread):
    """Yields the items of files. Counts in `unknown` the files of languages that have no parser here, by suffix, and adds to
    `unread` the generated files, which are marked as such in their first lines."""
    for file in files:
        if not file.is_file() or file.is_symlink():
            continue
        with open(file, "rb") as opened:
            data = opened.read()
        path = str(file.relative_to(root))
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        language = language_of(file, text[:80])
        if (language == "markdown" or language in languages) and generated.match(text):
            unread.append(f"{path}: a program generates it")
        elif language == "markdown":
            yield from of_markdown(path, text)
        elif language in languages:
            yield from of_code(path, text, language)
        elif language != "none":
            unknown[language] += 1


def subjects(tree, *words):
    """Yields the subjects of commits, the newest first."""
    log = subprocess.run(["git", "-C", tree, "log", "--no-merges", "--format=%h %s", *words], capture_output=True, text=True)
    for line in log.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        yield Item("subjects", f"commit {commit}", 1, subject)


def words_in(text):
    """Counts the words that do not stand for code."""
    return len(re.findall(r"(?<![\w-])[A-Za-z][A-Za-z'’-]*", text))
