// Workload (c) counts the phrases in a window that slides over the text. The counts are in an
// ordered map. Phrases that leave the window are erased, and phrases that enter it are inserted.
#pragma once

#include <bench/demo/tree.hpp>
#include <bench/demo/words.hpp>
#include <bench/demo/workload.hpp>

#include <functional>
#include <map>

namespace mallard::demo {

struct phrase_window {
    static constexpr workload_words words = {
        .name = "phrase-window",
        .type = "map<string, tally>, sliding",
        .read = "phrases passed",
        .made = "inserted",
        .found = "read in order",
    };
    static constexpr std::size_t bytes_max = std::size_t{3} << 18;
    static constexpr std::size_t width = 8192; // phrases in the window
    static constexpr std::size_t walks = 8; // walks in order over the final content of the window

    struct tally {
        std::uint32_t now = 0;   // how often the phrase is in the window
        std::uint32_t lines = 0; // sum of the line numbers of the phrase
    };

    template <class S>
    using structure =
        std::map<string_of<S>, tally, std::less<>,
                 typename S::template allocator_type<std::pair<const string_of<S>, tally>>>;

    template <class S>
    static void build(structure<S>& window, corpus all, answer& result)
    {
        auto const memory = window.get_allocator();
        using iterator = typename structure<S>::iterator;
        vector_of<S, iterator> recent(width, window.end(), memory); // a ring
        for (const auto& d : sample(all, bytes_max)) {
            std::string_view before;
            for_each_word(d.text, [&](std::string_view word, std::uint32_t line) {
                auto const at =
                    enter<S>(window, before.empty() ? word : joined(before, word), result);
                at->second.now += 1;
                at->second.lines += line;
                before = word;
                auto& oldest = recent[result.read++ % width];
                if (oldest != window.end() && --oldest->second.now == 0)
                    window.erase(oldest);
                oldest = at;
                return true;
            });
        }
    }

    template <class S>
    static void use(const structure<S>& window, corpus, answer& result)
    {
        for (std::size_t i = 0; i < walks; ++i)
            for (const auto& [phrase, count] : window) {
                ++result.found;
                result.checksum = result.checksum * 31 + hash_of(phrase) * count.now + count.lines;
            }
    }

private:
    /// Returns both words and the text between them, including white space.
    static std::string_view joined(std::string_view first, std::string_view second) noexcept
    {
        return {first.data(),
                static_cast<std::size_t>(second.data() + second.size() - first.data())};
    }

    template <class S>
    static auto enter(structure<S>& window, std::string_view phrase, answer& result)
    {
        auto const at = window.lower_bound(phrase);
        if (at != window.end() && at->first == phrase)
            return at;
        ++result.made;
        return window.try_emplace(at, string_of<S>(phrase, window.get_allocator()));
    }
};

} // namespace mallard::demo
