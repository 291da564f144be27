from tree import TreeTest

tool = "tools/check-style"
pool = "include/mallard/pool.hpp"


def function(lines):
    return "void f()\n{\n" + "    g();\n" * (lines - 2) + "}\n"


class CheckStyle(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("tools/style-exceptions.txt", "# none\n")

    def test_accepts_what_is_at_its_ceiling(self):
        self.write(pool, function(70) + "// TODO #12: more\n" * 329)
        self.write("include/mallard/bits.hpp", "#define MALLARD_COLD\n#if 1\n#endif\n")
        self.write("src/os/pages_linux.cpp", "#if 1\n#endif\n")
        self.accepts(tool)

    def test_finds_a_long_function(self):
        self.write(pool, "\n" + function(71))
        self.finds(tool, f"{pool}:3: function-lines: 71, at most 70")

    def test_finds_a_long_member_function(self):
        self.write(pool, "class c {\n" + function(71).replace("\n", "\n    ") + "\n};\n")
        self.finds(tool, "function-lines: 71, at most 70")

    def test_finds_a_long_file(self):
        self.write(pool, "\n" * 601)
        self.finds(tool, f"{pool}:601: file-lines: 601, at most 600")

    def test_finds_a_conditional(self):
        self.write(pool, "\n  # ifdef NDEBUG\n#endif\n")
        self.finds(tool, f"{pool}:2: conditional")

    def test_finds_a_macro(self):
        self.write(pool, "#define LIKELY(x) x\n")
        self.finds(tool, f"{pool}:1: macro")

    def test_accepts_the_guard_of_a_c_header(self):
        self.write("include/mallard/mallard.h", "#ifndef MALLARD_H\n#define MALLARD_H\n"
                                                "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
                                                "#endif\n")
        self.accepts(tool)

    def test_finds_what_is_no_guard_in_a_c_header(self):
        self.write("include/mallard/mallard.h", "#ifdef NDEBUG\n#define MALLARD_API\n#endif\n")
        self.finds(tool, "include/mallard/mallard.h:1: conditional")
        self.finds(tool, "include/mallard/mallard.h:2: macro")

    def test_finds_a_conditional_in_a_c_program(self):
        self.write("tests/c/pool.c", "#ifdef NDEBUG\n#endif\n")
        self.finds(tool, "tests/c/pool.c:1: conditional")

    def test_finds_a_todo_without_an_issue(self):
        self.write(pool, "// TO" + "DO: soon\n")
        self.finds(tool, f"{pool}:1: todo")

    def test_accepts_an_exception(self):
        self.write(pool, "\n" * 620)
        self.write("tools/style-exceptions.txt", f"file-lines {pool} 620 # the tables\n")
        self.accepts(tool)

    def test_finds_what_outgrew_its_exception(self):
        self.write(pool, "\n" * 621)
        self.write("tools/style-exceptions.txt", f"file-lines {pool} 620\n")
        self.finds(tool, f"{pool}:621: file-lines: 621, at most 620")

    def test_finds_an_exception_that_could_be_lower(self):
        self.write(pool, "\n" * 610)
        self.write("tools/style-exceptions.txt", f"file-lines {pool} 620\n")
        self.finds(tool, f"tools/style-exceptions.txt:1: file-lines {pool} 620: now 610")

    def test_finds_an_exception_that_nothing_needs(self):
        self.write("tools/style-exceptions.txt", f"file-lines {pool} 620\n")
        self.finds(tool, f"file-lines {pool} 620: now not needed")
