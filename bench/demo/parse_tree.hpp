// Workload (b) parses the text into a tree, then answers questions by walking the whole tree.
#pragma once

#include <bench/demo/block_reader.hpp>
#include <bench/demo/json_reader.hpp>
#include <bench/demo/workload.hpp>

namespace mallard::demo {

struct parse_tree {
    static constexpr workload_words words = {
        .name = "parse-tree",
        .type = "node { string; vector<node> }, nested",
        .read = "bytes parsed",
        .made = "nodes",
        .found = "calls and members found",
    };
    static constexpr std::size_t bytes_max = std::size_t{3} << 19;
    static constexpr int walks = 4;

    template <class S>
    using structure = forest<S>;

    template <class S>
    static void build(structure<S>& trees, corpus all, answer& result)
    {
        auto const memory = trees.get_allocator();
        for (const auto& d : sample(all, bytes_max)) {
            trees.push_back(d.is == format::json ? json_reader<S>(d.text, memory).read()
                                                 : block_reader<S>(d.text, memory).read());
            result.read += d.text.size();
        }
    }

    template <class S>
    static void use(const structure<S>& trees, corpus, answer& result)
    {
        for (int i = 0; i < walks; ++i) {
            result.made = 0;
            for (const auto& tree : trees)
                walk(tree, 1, result);
        }
    }

private:
    template <class Node>
    static void walk(const Node& at, std::uint64_t depth, answer& result)
    {
        ++result.made;
        result.checksum =
            result.checksum * 31 + depth * (at.text.size() + static_cast<unsigned>(at.is));
        if (!at.text.empty())
            result.checksum += static_cast<unsigned char>(at.text.front() ^ at.text.back());
        result.found += at.is == part::member;
        bool after_word = false;
        for (const auto& inner : at.parts) {
            result.found += after_word && inner.is == part::block && inner.text == "(";
            after_word = inner.is == part::word;
            walk(inner, depth + 1, result);
        }
    }
};

} // namespace mallard::demo
