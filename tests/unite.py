#!/usr/bin/env python3
"""Joins source files into one, so that the compiler reads headers and instantiates templates once.

    unite.py OUTPUT SOURCE...             files of a GoogleTest program
    unite.py OUTPUT --programs SOURCE...  programs: OUTPUT runs the one that its argument names

The text of each file is in a separate namespace, file_NAME, below the #include lines of all files. So
a SOURCE may not define a macro, a main with arguments, or a member of another namespace. Messages of
the compiler and of tests name the line of the SOURCE.
"""
import re
import sys
from pathlib import Path

program = re.compile(r"^int main\(\)$", re.M)
outside = re.compile(r"^(namespace \w|template <> *$|template <>.*::|#(define|if|undef)|void\* operator)", re.M)

dispatcher = """
#include <cstdio>
#include <cstring>

int main(int count, char** arguments)
{
    struct {
        const char* name;
        int (*run)();
    } const programs[] = {
%s    };
    for (auto const& program : programs)
        if (count == 2 && std::strcmp(arguments[1], program.name) == 0)
            return program.run();
    std::fputs("united: there is no such program\\n  nothing was run\\n  help: pass the name of a source\\n", stderr);
    return 2;
}
"""


def fail(source, what, help_):
    sys.exit(f"{source}: {what}\n  nothing was written\n  help: {help_}")


def as_function(source, text):
    """Turns a program into the function `run_program`. Like main, the function may end without a
    return."""
    start = program.search(text)
    if not start or text.rstrip()[-2:] != "\n}":
        fail(source, "does not end with `int main()`", "build the file alone, in CMakeLists.txt")
    text = text[:start.start()] + "int run_program()" + text[start.end():]
    return text.rstrip()[:-1] + "return 0; }\n"


def include_of(source, line):
    """Returns an #include line. If the included file is next to the source, the line has its full
    path."""
    relative = re.fullmatch(r'#include "(.*)"', line)
    return f'#include "{(source.parent / relative[1]).resolve()}"' if relative else line


def unite(sources, are_programs):
    includes, bodies = {}, []
    for source in sources:
        text = source.read_text()
        if found := outside.search(text):
            fail(source, f"cannot be in a namespace: {found[0]}", "build the file alone, in CMakeLists.txt")
        for line in re.findall(r"^#include .*$", text, re.M):
            includes[include_of(source, line.split(" //")[0])] = None
        text = re.sub(r"^#include .*$", "", text, flags=re.M)
        if are_programs:
            text = as_function(source, text)
        bodies.append(f'namespace file_{source.stem} {{\n#line 1 "{source}"\n{text}}}\n')
    table = "".join(f'        {{"{source.stem}", file_{source.stem}::run_program}},\n' for source in sources)
    return "\n".join([*includes, *bodies]) + (dispatcher % table if are_programs else "")


def main(arguments):
    output, *sources = arguments
    are_programs = sources[0] == "--programs"
    Path(output).write_text(unite([Path(source) for source in sources[are_programs:]], are_programs))


if __name__ == "__main__":
    main(sys.argv[1:])
