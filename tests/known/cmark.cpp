// expected advice: convert AS4 in render_document
//
// Converts the Markdown documents of docs/ to HTML with the library cmark-gfm. All blocks of a
// document are freed before the next one begins.
#include "known.hpp"

#include <cmark-gfm-core-extensions.h>

std::uint64_t render_document(const std::string& text)
{
    cmark_parser* const parser = cmark_parser_new(CMARK_OPT_DEFAULT);
    for (const char* const name : {"table", "strikethrough", "autolink"})
        cmark_parser_attach_syntax_extension(parser, cmark_find_syntax_extension(name));
    cmark_parser_feed(parser, text.data(), text.size());
    cmark_node* const document = cmark_parser_finish(parser);
    char* const html =
        cmark_render_html(document, CMARK_OPT_DEFAULT, cmark_parser_get_syntax_extensions(parser));
    std::uint64_t const result = known::hash_of(html);
    cmark_get_default_mem_allocator()->free(html);
    cmark_node_free(document);
    cmark_parser_free(parser);
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
