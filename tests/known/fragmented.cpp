// expected advice: switch
//
// Makes drafts, and pages from the drafts, drops the drafts, and continues with drafts that are a
// little longer. In a malloc that puts blocks of all sizes next to each other, the dropped drafts
// leave gaps between the pages. Each gap is too small for a longer draft or for a page, so the heap
// of such a malloc is a third larger than the blocks in use.
#include "known.hpp"

constexpr std::size_t page_bytes = 800;

/// Adds pages to the book. The drafts have `bytes` bytes each, and are needed only until the pages
/// are complete.
void write_chapter(std::vector<std::string>& book, std::size_t bytes)
{
    std::vector<std::string> drafts;
    drafts.reserve(4'000);
    for (std::size_t i = 0; i < 4'000; ++i) {
        drafts.emplace_back(bytes, static_cast<char>('a' + i % 26));
        book.emplace_back(page_bytes, static_cast<char>('a' + i % 13));
    }
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        std::uint64_t const sum = known::hash_of(drafts[i]);
        book[book.size() - 1 - i][sum % page_bytes] = '.';
    }
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 20);
    std::vector<std::string> book;
    book.reserve(static_cast<std::size_t>(rounds) * 4'000);
    for (int chapter = 0; chapter < rounds; ++chapter)
        write_chapter(book, 400 + 16 * static_cast<std::size_t>(chapter % 24));
    std::uint64_t sum = 0;
    for (const auto& page : book)
        sum = known::hash_of(page, sum);
    known::print(sum);
}
