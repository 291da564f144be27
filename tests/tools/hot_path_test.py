from tree import TreeTest

tool = "tools/check-hot-path"
pop = """
struct node { node* next; };
[[gnu::cold, gnu::noinline]] node* refill(node** list) { asm volatile("" ::: "memory"); return *list; }
extern "C" {
// hot: INSTRUCTIONS, TESTS
node* pop(node** list)
{
    node* const first = *list;
    BODY
    *list = first->next;
    return first;
}
}
int main() {}
"""
one_test = "if (first == nullptr) return refill(list);"


class CheckHotPath(TreeTest):
    def check(self, instructions, tests, body):
        text = pop.replace("INSTRUCTIONS", instructions).replace("TESTS", tests)
        return self.run_python(tool, self.write("hot.cpp", text.replace("BODY", body)))

    def finds(self, fault, *what):
        status, text = self.check(*what)
        self.assertIn(fault, text)
        self.assertEqual(status, 1)

    def test_accepts_a_hot_path_within_its_instruction_limit(self):
        self.assertEqual(self.check("5 instructions", "1 test", one_test), (0, ""))

    def test_finds_one_instruction_too_many(self):
        self.finds("pop: instructions 5, tests 1; promised: instructions <= 4",
                   "4 instructions", "1 test", one_test)

    def test_finds_an_additional_branch(self):
        self.finds("tests 2; promised: instructions <= 9, tests 1", "9 instructions", "1 test",
                   one_test + "if (first->next == first) return refill(list);")

    def test_finds_a_missing_branch(self):
        self.finds("tests 0; promised: instructions <= 9, tests 1", "9 instructions", "1 test", "")

    def test_finds_a_hot_path_that_always_calls_a_function(self):
        self.finds("pop: has no way to `ret` without a call", "9 instructions", "0 tests",
                   "refill(list);")

    def test_finds_a_function_that_is_only_a_jump_to_another(self):
        self.finds("pop: has no way to `ret` without a call", "9 instructions", "0 tests",
                   "return refill(list);")

    def test_reports_a_file_that_does_not_compile(self):
        self.finds("hot.cpp does not compile", "9 instructions", "1 test", "nonsense")
