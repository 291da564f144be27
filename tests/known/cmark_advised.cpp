// follows the advice: convert AS4 in render_document
//
// The program cmark.cpp with an arena, which is reset after each document. The tree is not freed
// node by node.
#include "known.hpp"

#include <mallard/arena.hpp>

#include <cmark-gfm-core-extensions.h>

#include <cstring>

/// Starts each block. It has the size, because cmark-gfm passes none to free or realloc.
struct sized_block {
    alignas(16) std::size_t bytes;
};

mallard::arena<> memory;

void* allocate(std::size_t bytes)
{
    auto* const block =
        static_cast<sized_block*>(memory.allocate({sizeof(sized_block) + bytes, 16}));
    block->bytes = bytes;
    return block + 1;
}

void* allocate_zeroed(std::size_t items, std::size_t bytes)
{
    return std::memset(allocate(items * bytes), 0, items * bytes);
}

void* resize(void* old, std::size_t bytes)
{
    std::size_t const before = old != nullptr ? static_cast<sized_block*>(old)[-1].bytes : 0;
    if (bytes <= before)
        return old;
    void* const larger = allocate(bytes);
    return before > 0 ? std::memcpy(larger, old, before) : larger;
}

void free_nothing(void*) {}

cmark_mem in_arena = {allocate_zeroed, resize, free_nothing};

std::uint64_t render_document(const std::string& text)
{
    cmark_parser* const parser = cmark_parser_new_with_mem(CMARK_OPT_DEFAULT, &in_arena);
    for (const char* const name : {"table", "strikethrough", "autolink"})
        cmark_parser_attach_syntax_extension(parser, cmark_find_syntax_extension(name));
    cmark_parser_feed(parser, text.data(), text.size());
    cmark_node* const document = cmark_parser_finish(parser);
    std::uint64_t const result = known::hash_of(cmark_render_html_with_mem(
        document, CMARK_OPT_DEFAULT, cmark_parser_get_syntax_extensions(parser), &in_arena));
    memory.reset();
    return result;
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 40);
    cmark_gfm_core_extensions_ensure_registered();
    auto const documents = known::texts(KNOWN_DOCUMENTS, ".md");
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i)
        for (const auto& text : documents)
            sum = sum * 31 + render_document(text);
    known::print(sum);
}
