// expected advice: switch or convert AS11 or pool AS7
//
// Parses documents into trees, and keeps one string of each tree, its title. So the memory of a
// tree must not be freed as a whole, and wink-out (AS4, AS8, AS12) is always wrong. A pool for all
// trees is as good as a multipool over an arena for each tree.
#include "known.hpp"

struct element {
    std::string name, text;
    std::vector<element> parts;
};

/// Parses `<name>text<name>...</>text</>`: elements that contain text and elements.
class reader {
public:
    explicit reader(std::string_view text) : text_(text) {}

    element read()
    {
        element made;
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
    element root = reader(text).read();
    std::uint64_t const sum = sum_of(root);
    titles.push_back(std::move(root.parts.front().text));
    return sum;
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
