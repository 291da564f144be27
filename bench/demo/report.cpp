#include <bench/demo/report.hpp>

#include <bench/demo/print.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include <unistd.h>

namespace mallard::demo {

namespace {

/// Whether to use colour. True if standard output is a terminal and NO_COLOR is not set.
bool is_coloured()
{
    static bool const yes = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
    return yes;
}

std::string styled(const char* code, const std::string& text)
{
    return is_coloured() ? print("\033[%sm", code) + text + "\033[0m" : text;
}

constexpr char bold[] = "1", dim[] = "2", green[] = "1;32", yellow[] = "33";

void put(const std::string& line)
{
    std::printf("%s\n", line.c_str());
}

constexpr std::size_t line_max = 100, label_width = 11;

/// Prints a label with a sentence beside it, wrapped at the width of the terminal.
void put_labelled(const std::string& label, std::string_view sentence)
{
    std::string line = "  " + styled(bold, label) + std::string(label_width - label.size(), ' ');
    std::size_t const indent = 2 + label_width;
    std::size_t column = indent;
    while (!sentence.empty()) {
        auto const word = sentence.substr(0, sentence.find(' '));
        if (column > indent && column + 1 + word.size() > line_max) {
            put(line);
            line = std::string(indent, ' ');
            column = indent;
        }
        line += (column > indent ? " " : "") + std::string(word);
        column += (column > indent) + word.size();
        sentence.remove_prefix(std::min(word.size() + 1, sentence.size()));
    }
    put(line);
}

/// Formats words such as "arena, type parameter, wink-out" as three columns.
std::string in_columns(std::string_view words)
{
    std::string text;
    for (int const width : {18, 16, 10}) {
        auto const end = std::min(words.find(", "), words.size());
        text += print("%-*.*s", width, static_cast<int>(end), words.data());
        words.remove_prefix(std::min(end + 2, words.size()));
    }
    return text;
}

/// Draws a bar of ten characters, of which `share` is filled, in steps of an eighth of a character.
std::string bar(double share)
{
    constexpr int width = 10;
    constexpr std::array eighths = {"",       "\u258f", "\u258e", "\u258d",
                                    "\u258c", "\u258b", "\u258a", "\u2589"};
    auto const units = std::clamp(static_cast<int>(share * 8 * width + 0.5), 1, 8 * width);
    std::string text;
    for (int i = 0; i < units / 8; ++i)
        text += "\u2588";
    text += eighths[static_cast<std::size_t>(units % 8)];
    return text + std::string(static_cast<std::size_t>(width - units / 8 - (units % 8 > 0)), ' ');
}

void put_head()
{
    put(styled(dim, print("%72s%12s%7s%8s", "time", "vs", "peak", "after")));
    put(styled(dim, print("         %-18s%-16s%-10s%19s%5s%7s%7s%8s", "allocator", "binding", "end",
                          "ms", "+-%", "AS1", "MiB", "MiB")));
}

void put_standing(const advice& a, std::size_t index, double slowest)
{
    standing const& who = a.standings[index];
    auto const& seconds = who.seconds;
    bool const is_chosen = index == a.chosen;
    bool const is_same = index > 0 && who.to_heap.says == verdict::no_difference;
    auto const line = print(" %c %-5s %s", is_chosen ? '>' : ' ', who.strategy->name.data(),
                            in_columns(who.strategy->words).c_str()) +
                      bar(seconds.median / slowest) +
                      print("  %7.2f %4.0f %c%5.2f ", 1e3 * seconds.median,
                            50 * (seconds.high - seconds.low) / std::max(seconds.median, 1e-12),
                            is_same ? '~' : ' ', who.to_heap.ratio);
    auto const memory = print("%6.1f%c", mib(who.peak_kib.median), who.is_too_large ? '!' : ' ');
    auto const after = print(" %6.1f", mib(who.after_kib.median));
    if (is_chosen)
        put(styled(green, line + memory + after));
    else
        put(line + (who.is_too_large ? styled(yellow, memory) : memory) + after);
}

void put_dimensions(const dimensions& d, const profile& p)
{
    put_labelled(
        "D " + print("%.3f", d.density),
        print("one allocation or free in %.0f ns of AS1 (a proxy: a ns stands for an instruction)",
              1 / std::max(d.density, 1e-9)));
    put_labelled(
        "V " + print("%.1g", d.variation),
        grouped(p.sizes) + " sizes in " + grouped(p.allocations) +
            print(" allocations; %.1f bits of entropy over size classes", p.class_entropy));
    put_labelled("L " + print("%.2f", d.locality),
                 "of the use phase is saved by local layouts (a proxy: the median of AS3 to AS14)");
    put_labelled("U " + print("%.2f", d.utilisation),
                 "at most " + size_text(p.bytes_at_peak) + " in use, of " +
                     size_text(p.bytes_total) + " allocated in all");
    put_labelled("C 0, F 0",
                 "one thread; alone: no other part allocates while the structure lives");
}

std::string title(std::string_view name)
{
    std::string text(name);
    std::ranges::replace(text, '-', ' ');
    text[0] = static_cast<char>(std::toupper(text[0]));
    return text;
}

} // namespace

void print_opening(const collection& taken, const bench::provenance& run)
{
    put(styled(bold, "Which allocation strategy? Three workloads under fourteen, every run in a "
                     "process of its own."));
    put("");
    put_labelled("text", grouped(taken.files.size()) +
                             (taken.files.size() == 1 ? " file, " : " files, ") +
                             size_text(taken.bytes()) +
                             print(", fingerprint %016llx",
                                   static_cast<unsigned long long>(taken.fingerprint())));
    for (const auto& p : taken.places)
        put_labelled("", p.name + ": " + grouped(p.files) +
                             (p.files == 1 ? " file, " : " files, ") + size_text(p.bytes));
    constexpr std::size_t notes_max = 8;
    for (std::size_t i = 0; i < std::min(notes_max, taken.notes.size()); ++i)
        put_labelled(i == 0 ? "note" : "", taken.notes[i]);
    if (taken.notes.size() > notes_max)
        put_labelled("", print("and %zu more like these", taken.notes.size() - notes_max));
    put_labelled("machine", run.machine);
    put_labelled(
        "time",
        "of a processor, in building, using and destroying the structure; +-% is half of the "
        "range over the median; runs are interleaved, and vs AS1 is the median of pairs");
    put_labelled("memory", "resident, program and text included");
    std::fflush(stdout);
}

void print_finding(const finding& f)
{
    auto const& [s, a] = f;
    auto const& says = s->says;
    put("");
    put(styled(bold, title(s->words.name)) + "  " + std::string(s->words.type));
    put_labelled("answer",
                 grouped(says.read) + " " + std::string(s->words.read) + ", " + grouped(says.made) +
                     " " + std::string(s->words.made) + ", " + grouped(says.found) + " " +
                     std::string(s->words.found) + print("; all %zu agree", a.standings.size()) +
                     (s->rounds > 1 ? "; done " + grouped(s->rounds) + " times a run" : ""));
    put("");
    put_head();
    auto const slowest =
        std::ranges::max(a.standings, {}, [](const standing& w) { return w.seconds.median; });
    for (std::size_t i = 0; i < a.standings.size(); ++i)
        put_standing(a, i, slowest.seconds.median);
    put(styled(dim, "   > take this   ~ no difference   ! more than 1.5x the memory"));
    put("");
    put_dimensions(a.measured, s->counts);
    for (const auto& [word, sentence] : a.reasons)
        put_labelled(word, sentence);
    std::fflush(stdout);
}

void print_closing(const std::vector<finding>& findings, const session& done,
                   std::size_t runs_planned)
{
    put("");
    for (const auto& [s, a] : findings) {
        auto const& choice = a.choice();
        put(styled(bold, print("  %-15s", title(s->words.name).c_str())) +
            (a.chosen == 0
                 ? std::string(a.has_enough_runs() ? "AS1   stay: no gain detected"
                                                   : "AS1   too few runs to tell")
                 : print("%-5s %.2fx faster, %.2fx the memory: ", choice.strategy->name.data(),
                         1 / choice.to_heap.ratio, choice.memory_ratio) +
                       std::string(choice.strategy->words)));
    }
    if (done.interrupted)
        put(print("\nInterrupted: %zu of %zu runs were finished, and what they show is above.",
                  findings.empty() ? 0 : findings.back().measured->runs_done(), runs_planned));
    if (done.out_of_time)
        put(print("\n%zu of %zu runs were made, as many as two minutes allow; `--runs N` makes N.",
                  findings.back().measured->runs_done(), runs_planned));
}

} // namespace mallard::demo
