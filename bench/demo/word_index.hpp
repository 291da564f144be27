// Workload (a) builds an index of the lines of each word, and then looks phrases up.
#pragma once

#include <bench/demo/tree.hpp>
#include <bench/demo/words.hpp>
#include <bench/demo/workload.hpp>

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace mallard::demo {

struct position {
    std::uint32_t document, line;
    auto operator<=>(const position&) const = default;
};

struct word_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const noexcept { return hash_of(word); }
};

struct word_index {
    static constexpr workload_words words = {
        .name = "word-index",
        .type = "unordered_map<string, vector<position>>",
        .read = "words",
        .made = "different",
        .found = "lines found for phrases",
    };
    static constexpr std::size_t bytes_max = std::size_t{5} << 20;
    static constexpr std::size_t asked_bytes_max =
        std::size_t{1} << 20;                  // bytes of the text from which queries are made
    static constexpr std::size_t page = 64;    // maximum number of lines in an answer
    static constexpr unsigned asked_every = 8; // one phrase query for every 8 words

    template <class S>
    using positions = vector_of<S, position>;

    template <class S>
    using structure = std::unordered_map<
        string_of<S>, positions<S>, word_hash, std::equal_to<>,
        typename S::template allocator_type<std::pair<const string_of<S>, positions<S>>>>;

    template <class S>
    static void build(structure<S>& index, corpus all, answer& result)
    {
        auto const memory = index.get_allocator();
        std::uint32_t document = 0;
        for (const auto& d : sample(all, bytes_max)) {
            for_each_word(d.text, [&](std::string_view word, std::uint32_t line) {
                auto at = index.find(word);
                if (at == index.end())
                    at = index.try_emplace(string_of<S>(word, memory), positions<S>(memory)).first;
                at->second.push_back({document, line});
                ++result.read;
                return true;
            });
            ++document;
        }
        result.made = index.size();
        for (const auto& [word, where] :
             index) // a sum, because the order in a hash table is unspecified
            result.checksum += hash_of(word) * where.size();
    }

    /// Looks up phrases of two neighbouring words: finds the lines that contain both words.
    template <class S>
    static void use(const structure<S>& index, corpus all, answer& result)
    {
        for (const auto& d : sample(sample(all, bytes_max), asked_bytes_max)) {
            std::string_view before;
            unsigned number = 0;
            for_each_word(d.text, [&](std::string_view word, std::uint32_t) {
                if (++number % asked_every == 0 && !before.empty())
                    ask(index.find(before)->second, index.find(word)->second, result);
                before = word;
                return true;
            });
        }
    }

private:
    template <class Positions>
    static void ask(const Positions& one, const Positions& other, answer& result)
    {
        bool const one_is_rarer = one.size() < other.size();
        const Positions& rare = one_is_rarer ? one : other;
        const Positions& frequent = one_is_rarer ? other : one;
        auto from = frequent.begin();
        auto const end = rare.begin() + static_cast<std::ptrdiff_t>(std::min(page, rare.size()));
        for (auto at = rare.begin(); at != end; ++at) {
            from = std::lower_bound(from, frequent.end(), *at);
            if (from == frequent.end())
                return;
            if (*from == *at) {
                ++result.found;
                result.checksum = result.checksum * 31 + at->document + at->line;
            }
        }
    }
};

} // namespace mallard::demo
