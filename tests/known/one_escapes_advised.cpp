// follows the advice: convert AS11
//
// The program one_escapes.cpp with a multipool over an arena for the tree of each document. The
// title is in the heap as before.
#include "known.hpp"

#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pmr.hpp>

#include <memory_resource>

struct element {
    using allocator_type = std::pmr::polymorphic_allocator<std::byte>;

    explicit element(allocator_type memory) : name(memory), text(memory), parts(memory) {}
    element(element&& other) noexcept = default;
    element(element&& other, allocator_type memory)
        : name(std::move(other.name), memory), text(std::move(other.text), memory),
          parts(std::move(other.parts), memory)
    {
    }

    std::pmr::string name, text;
    std::pmr::vector<element> parts;
};

/// Parses `<name>text<name>...</>text</>`: elements that contain text and elements.
class reader {
public:
    reader(std::string_view text, std::pmr::memory_resource& memory) : text_(text), memory_(memory)
    {
    }

    element read()
    {
        element made(&memory_);
        made.name = word('>');
        made.text = word('<');
        while (at_ < text_.size() && text_[at_] != '/') {
            made.parts.push_back(read());
            made.text += word('<');
        }
        at_ += 2;
        return made;
    }

private:
    /// Returns the text before `end`, and skips both.
    std::string_view word(char end)
    {
        std::size_t const begin = at_;
        at_ = std::min(text_.find(end, begin), text_.size());
        return text_.substr(begin, at_++ - begin);
    }

    std::string_view text_;
    std::size_t at_ = 1;
    std::pmr::memory_resource& memory_;
};

std::string_view const names[] = {"section", "paragraph_with_a_long_name", "list", "item",
                                  "emphasis"};

void write_element(std::string& out, known::random_numbers& random, int depth)
{
    out += '<';
    out += names[random.below(5)];
    out += '>';
    for (std::uint32_t i = random.below(12); i-- > 0;)
        out += "some words ";
    for (std::uint32_t i = depth > 0 ? 1 + random.below(5) : 0; i-- > 0;)
        write_element(out, random, depth - 1);
    out += "</>";
}

std::uint64_t sum_of(const element& at)
{
    std::uint64_t sum = at.name.size() * 3 + at.text.size();
    for (const auto& part : at.parts)
        sum = sum * 31 + sum_of(part);
    return sum;
}

/// Returns a number computed from the content of a document. Keeps the title.
std::uint64_t read_document(std::string_view text, std::vector<std::string>& titles)
{
    mallard::pmr_resource<mallard::multipool<mallard::arena<>>> memory;
    element const root = reader(text, memory).read();
    titles.emplace_back(root.parts.front().text);
    return sum_of(root);
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 30);
    known::random_numbers random(3);
    std::vector<std::string> documents(50), titles;
    for (auto& text : documents)
        write_element(text, random, 6);
    titles.reserve(documents.size() * static_cast<std::size_t>(rounds));
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i)
        for (const auto& text : documents)
            sum = sum * 31 + read_document(text, titles);
    known::print(known::hash_of(titles.back(), sum));
}
