#!/usr/bin/env python3
"""Tests of answers.py, known_test.py and rows.py."""
import contextlib
import io
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))
import answers  # noqa: E402
import known_test  # noqa: E402
import rows  # noqa: E402


def advice(action, strategy=None, function=None, saving=0.2, matrix=(), verdict="change"):
    card = {"action": action, "strategy": strategy, "site": None, "saving": {"total": {"saving": saving, "low": 0.1, "high": 0.3}},
            "region": {"function": function} if function else None}
    return {"verdict": verdict, "cards": [card], "matrix": list(matrix), "took_s": 1}


def is_right(line, given):
    return answers.judge(answers.parse(f"// expected advice: {line}"), given).is_right


class Answers(unittest.TestCase):
    def test_an_answer_line_is_parsed_and_written_back_unchanged(self):
        for line in ("convert AS4 in render_document", "pool AS7", "switch", "fix in remember", "leave",
                     "convert AS11 or leave in read_document", "convert AS3 or convert AS4 in a::b"):
            self.assertEqual(str(answers.parse(f"// expected advice: {line}")), line)

    def test_a_strategy_without_an_action_uses_the_preceding_action(self):
        self.assertEqual(answers.parse("// expected advice: convert AS4 or AS12").pairs, (("convert", "AS4"), ("convert", "AS12")))

    def test_lines_with_other_content_are_not_answers(self):
        for line in ("// expected advice: AS4", "// expected advice: improve", "// expected advice: convert AS4 AS5", "expected advice: leave", ""):
            self.assertIsNone(answers.parse(line), line)

    def test_an_answer_is_right_only_with_the_right_action_strategy_and_function(self):
        line = "convert AS4 in parse"
        self.assertTrue(is_right(line, advice("convert", "AS4", "doc::parse(char const*)")))
        self.assertFalse(is_right(line, advice("pool", "AS4", "doc::parse(char const*)")))
        self.assertFalse(is_right(line, advice("convert", "AS12", "doc::parse(char const*)")))
        self.assertFalse(is_right(line, advice("convert", "AS4", "doc::parse_all(char const*)")))
        self.assertFalse(is_right(line, advice("convert", "AS4")))

    def test_a_strategy_that_differs_in_binding_is_right(self):
        self.assertTrue(is_right("convert AS4", advice("convert", "AS6")))
        self.assertTrue(is_right("pool AS9", advice("pool", "AS7")))
        self.assertFalse(is_right("convert AS4", advice("convert", "AS3")))

    def test_a_strategy_that_saves_nearly_as_much_as_the_best_is_right(self):
        def with_matrix(saving):
            return advice("convert", "AS4", "f", 0.2, [{"name": "AS12 in f", "region": "f", "saving": saving}])
        self.assertTrue(is_right("convert AS12 in f", with_matrix(0.18)))
        self.assertFalse(is_right("convert AS12 in f", with_matrix(0.16)))
        self.assertFalse(is_right("convert AS12 in f", with_matrix(None)))

    def test_a_strategy_in_another_region_is_not_right_even_if_it_saves_as_much(self):
        far = advice("convert", "AS4", "f", 0.2, [{"name": "AS12 in g", "region": "g", "saving": 0.2}])
        self.assertFalse(is_right("convert AS12 in f", far))

    def test_a_malloc_is_right_if_the_strategy_saves_about_the_same_by_replay(self):
        def given(of_pool, replayed):
            said = advice("switch", matrix=[{"name": "mallard", "saving": 0.3, "replayed": replayed},
                                            {"name": "AS7", "region": None, "saving": of_pool}])
            said["cards"][0]["allocator"] = "mallard"
            return said
        self.assertTrue(is_right("pool AS7", given(0.20, 0.22)))
        self.assertTrue(is_right("pool AS7", given(0.28, None)))
        self.assertFalse(is_right("pool AS7", given(0.15, 0.22)))
        self.assertFalse(is_right("pool AS7", given(0.29, 0.22)))
        self.assertFalse(is_right("pool AS7", given(0.20, None)))
        self.assertFalse(is_right("convert AS4 in f", given(0.30, 0.22)))

    def test_each_of_several_accepted_answers_is_right(self):
        line = "convert AS11 or leave in read"
        self.assertTrue(is_right(line, advice("leave", saving=None)))
        self.assertTrue(is_right(line, advice("convert", "AS11", "read")))
        self.assertFalse(is_right(line, advice("switch")))

    def test_only_recommendations_for_one_function_must_name_it(self):
        line = "convert AS12 or switch in run"
        self.assertTrue(is_right(line, advice("switch")))
        self.assertFalse(is_right(line, advice("convert", "AS12", "other")))

    def test_an_undecided_advice_is_neither_right_nor_a_wrong_action(self):
        judged = answers.judge(answers.parse("// expected advice: leave"), advice("leave", verdict="undecided"))
        self.assertTrue(judged.is_undecided and not judged.is_right and judged.is_action_right)

    def test_recommending_wink_out_is_wrong_if_no_accepted_answer_has_it(self):
        given = advice("convert", "AS11", "read")
        self.assertTrue(is_right("convert AS11 or switch", given))
        given["cards"].append(advice("convert", "AS14", "write")["cards"][0])
        self.assertFalse(is_right("convert AS11 or switch", given))
        self.assertTrue(is_right("convert AS11 or AS4", given))
        near = advice("convert", "AS12", "f", 0.2, [{"name": "AS11 in f", "region": "f", "saving": 0.2}])
        self.assertFalse(is_right("convert AS11", near))

    def test_a_measured_saving_is_compared_with_the_predicted_interval(self):
        self.assertTrue(answers.is_inside({"saving": 0.1}, 0.1, 0.3))
        self.assertFalse(answers.is_inside({"saving": 0.31}, 0.1, 0.3))
        self.assertFalse(answers.is_inside({"saving": None}, 0.1, 0.3))
        self.assertFalse(answers.is_inside({"saving": 0.2}, None, None))

    def test_the_prediction_of_the_change_in_the_advised_program_is_used(self):
        def row(name, region, saving, low):
            return {"name": name, "region": region, "saving": saving, "expected": {"low": low, "high": 0.9}}
        given = advice("switch", matrix=[row("AS7", None, 0.1, 0.2), row("AS9", None, 0.3, 0.4), row("AS4", "a::f", 0.1, 0.5), row("AS7", "f", 0.8, 0.7)])

        def followed(words):
            return answers.predicted(answers.parse(f"// follows the advice: {words}", "// follows the advice: "), given)
        self.assertEqual(followed("pool AS7"), (0.4, 0.9))
        self.assertEqual(followed("convert AS4 in f"), (0.5, 0.9))
        self.assertEqual(followed("convert AS7 in f"), (0.7, 0.9))
        self.assertEqual(followed("convert AS4 in g"), (None, None))
        self.assertEqual(followed("convert AS11"), (None, None))

    def test_the_saving_in_the_program_comes_from_the_recommendation_for_the_same_function(self):
        followed = answers.parse("// follows the advice: convert AS4 in f", "// follows the advice: ")
        saving = {"saving": 0.3, "low": 0.2, "high": 0.4}
        def given(function, action="convert"):
            made = advice(action, "AS3", function)
            made["cards"][0]["saving"] = {"in_program": {"saving": saving}}
            return made
        self.assertEqual(answers.in_program(followed, given("f")), saving)
        self.assertIsNone(answers.in_program(followed, given("g")))
        self.assertIsNone(answers.in_program(followed, given("f", "pool")))
        self.assertIsNone(answers.in_program(followed, advice("convert", "AS3", "f")))

    def test_savings_of_mallocs_in_runs_are_compared_with_their_replays(self):
        def row(saving, verdict="gain", by="try"):
            return {"name": "mallard", "saving": saving, "verdict": verdict, "measured_by": by, "predicted": {"low": 0.1, "high": 0.3}}
        given = advice("switch", matrix=[row(0.2), row(0.4), row(0.2, "loss"), row(0.2, by="replay")])
        self.assertEqual(list(answers.of_mallocs(given)), [True, False])

    def test_results_count_answers_and_contain_predictions_and_measurements(self):
        matrix = [{"name": "AS4 in f", "region": "f", "saving": 0.3, "measured_by": "plan",
                   "expected": {"low": 0.2, "high": 0.6}},
                  {"name": "mallard", "saving": 0.29}]
        right, level = advice("convert", "AS4", "f", 0.3, matrix), advice("switch", matrix=matrix)
        right["cards"][0]["saving"]["in_program"] = {"saving": {"saving": 0.28, "low": 0.25, "high": 0.35}}
        level["cards"][0]["allocator"] = "mallard"
        wrong, undecided = advice("leave"), advice("leave")
        undecided["verdict"] = "undecided"
        def program(name, line, advices, verified=None):
            return SimpleNamespace(name=name, expected=answers.parse(f"// expected advice: {line}"), advices=advices, verified=verified,
                                   used=[SimpleNamespace(ru_maxrss=1)], predicted=lambda: (0.2, 0.6),
                                   followed=answers.parse(line, ""), replayed=verified and advice("convert", matrix=matrix))
        known = program("p", "convert AS4 in f", [level, wrong, undecided, right], {"saving": 0.4, "low": 0.3, "high": 0.5})
        leave = program("q", "leave", [advice("leave", verdict="leave"), right])
        found = {(case, metric): figure for case, _, _, metric, figure in rows.all_rows([known, leave])}
        of = {metric: figure["median"] for (case, metric), figure in found.items() if case == "all"}
        self.assertEqual(of, {"right_answers": 3, "wrong_answers": 2, "undecided_answers": 1, "equal_switches": 1,
                              "false_changes": 1})
        self.assertEqual(found["p", "measured_saving"]["median"], 0.4)
        predicted = found["p", "predicted_saving"]
        self.assertEqual((predicted["low"], predicted["high"], predicted["median"]), (0.2, 0.6, 0.4))
        self.assertEqual(found["p", "in_program_saving"]["low"], 0.25)
        self.assertEqual(found["p", "replayed_saving"]["high"], 0.6)
        self.assertNotIn(("q", "measured_saving"), found)

    def test_a_wrong_answer_is_retried_with_twice_the_budget(self):
        def budgets(runs, *given):
            known = known_test.Known("p", ["p"], answers.parse("// expected advice: pool"))
            asked, given = [], list(given)

            def advise(mallard, budget, folder):
                asked.append(budget)
                known.advices.append(given.pop(0))
                return known.advices[-1]
            known.advise = advise
            options = SimpleNamespace(runs=runs, budget=60, mallard="", keep=None)
            with contextlib.redirect_stderr(io.StringIO()):
                return known_test.check(known, options, ""), asked
        right, wrong = advice("pool"), advice("leave")
        self.assertEqual(budgets(1, right), ("", [60]))
        self.assertEqual(budgets(1, wrong, right), ("", [60, 120]))
        self.assertEqual(budgets(1, wrong, wrong), ("the first recommendation is leave", [60, 120]))
        self.assertEqual(budgets(5, wrong), ("the first recommendation is leave", [60]))


if __name__ == "__main__":
    unittest.main()
