from tree import TreeTest

tool = "tools/check-style"
pool = "include/mallard/pool.hpp"


def function(lines):
    return "void f()\n{\n" + "    g();\n" * (lines - 2) + "}\n"


class CheckStyle(TreeTest):
    def warns(self, warning):
        status, text = self.run_python(tool, self.tree)
        self.assertEqual((status, text), (0, warning + "\n"))

    def test_accepts_files_and_functions_of_the_maximum_length(self):
        self.write(pool, function(40) + "// TODO #12: more\n" * 559)
        self.accepts(tool)

    def test_accepts_macros_and_conditionals_in_platform_specific_files(self):
        self.write("include/mallard/detail/base/bits.hpp", "#define MALLARD_COLD\n#if 1\n#endif\n")
        self.write("CMakeLists.txt", "src/os/pages_${platform}.cpp")
        self.write("src/os/pages_linux.cpp", "#if 1\n#endif\n")
        self.accepts(tool)

    def test_warns_of_a_long_function(self):
        self.write(pool, "\n" + function(41))
        self.warns(f"{pool}:3: warning: function-lines: 41, more than 40")

    def test_warns_of_a_long_member_function(self):
        self.write(pool, "class c {\n" + function(41).replace("\n", "\n    ") + "\n};\n")
        self.warns(f"{pool}:3: warning: function-lines: 41, more than 40")

    def test_warns_of_a_long_file(self):
        self.write(pool, "\n" * 601)
        self.warns(f"{pool}:601: warning: file-lines: 601, more than 600")

    def test_finds_a_preprocessor_conditional(self):
        self.write(pool, "\n  # ifdef NDEBUG\n#endif\n")
        self.finds(tool, f"{pool}:2: conditional")

    def test_finds_a_macro(self):
        self.write(pool, "#define LIKELY(x) x\n")
        self.finds(tool, f"{pool}:1: macro")

    def test_accepts_the_guard_of_a_c_header(self):
        self.write("include/mallard/c/mallard.h", "#ifndef MALLARD_H\n#define MALLARD_H\n"
                                                "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
                                                "#endif\n")
        self.accepts(tool)

    def test_finds_macros_and_conditionals_other_than_the_guard_in_a_c_header(self):
        self.write("include/mallard/c/mallard.h", "#ifdef NDEBUG\n#define MALLARD_API\n#endif\n")
        self.finds(tool, "include/mallard/c/mallard.h:1: conditional")
        self.finds(tool, "include/mallard/c/mallard.h:2: macro")

    def test_finds_a_conditional_in_a_c_program(self):
        self.write("tests/c/pool.c", "#ifdef NDEBUG\n#endif\n")
        self.finds(tool, "tests/c/pool.c:1: conditional")

    def test_finds_a_todo_without_an_issue(self):
        self.write(pool, "// TO" + "DO: soon\n")
        self.finds(tool, f"{pool}:1: todo")

    def test_accepts_sources_that_a_list_names(self):
        self.write("src/engine_sources.txt", "# lists\nengine  O2  heap/fork.cpp\nengine  Os  os/system_{platform}.cpp\n")
        self.write("src/c/CMakeLists.txt", "add_library(c pool.cpp)\n")
        for file in ("heap/fork.cpp", "os/system_linux.cpp", "c/pool.cpp"):
            self.write(f"src/{file}", "")
        self.accepts(tool)

    def test_finds_a_source_that_no_list_names(self):
        self.write("src/c/CMakeLists.txt", "add_library(c spool.cpp)\n")
        self.write("src/c/pool.cpp", "")
        self.finds(tool, "src/c/pool.cpp:1: sources: no list names it")

    def test_finds_a_listed_source_that_does_not_exist(self):
        self.write("src/engine_sources.txt", "\nengine  O2  heap/fork.cpp\n")
        self.finds(tool, "src/engine_sources.txt:2: sources: src/heap/fork.cpp does not exist")
