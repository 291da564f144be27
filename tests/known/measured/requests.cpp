// expected advice: convert AS4 in handle
//
// Answers the requests of a web service. Parses each request into its headers, its query and a tree
// of its body, computes a total from them, and drops all of it.
#include "../known.hpp"

#include <map>
#include <memory>
#include <utility>

/// A part of a body: a text, a list `[a,b]` or an object `{a:b,c:d}`.
struct value {
    std::string text;
    std::vector<std::unique_ptr<value>> items;
    std::map<std::string, std::unique_ptr<value>, std::less<>> members;
};

struct request {
    std::string method, path;
    std::vector<std::pair<std::string, std::string>> query;
    std::map<std::string, std::string, std::less<>> headers;
    std::unique_ptr<value> body;
};

class parser {
public:
    explicit parser(std::string_view text) : rest_(text) {}

    request read()
    {
        request made;
        made.method = until(' ');
        made.path = until('?');
        read_query(made);
        while (!rest_.starts_with('\n')) {
            auto const name = until(':');
            made.headers.emplace(name, until('\n'));
        }
        rest_.remove_prefix(1);
        made.body = read_value();
        return made;
    }

private:
    void read_query(request& made)
    {
        std::string_view line = until('\n');
        while (!line.empty()) {
            auto const pair = line.substr(0, line.find('&'));
            auto const equals = pair.find('=');
            made.query.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
            line.remove_prefix(std::min(line.size(), pair.size() + 1));
        }
    }

    std::unique_ptr<value> read_value()
    {
        auto made = std::make_unique<value>();
        char const first = rest_.front();
        if (first != '[' && first != '{') {
            auto const end = rest_.find_first_of(",]}");
            made->text = rest_.substr(0, end);
            rest_.remove_prefix(std::min(end, rest_.size()));
            return made;
        }
        do {
            rest_.remove_prefix(1); // the bracket or the comma
            if (first == '[') {
                made->items.push_back(read_value());
            } else {
                auto const name = until(':');
                made->members.emplace(name, read_value());
            }
        } while (rest_.front() == ',');
        rest_.remove_prefix(1);
        return made;
    }

    /// Returns the text before `end`, and skips both.
    std::string_view until(char end)
    {
        auto const found = rest_.substr(0, rest_.find(end));
        rest_.remove_prefix(found.size() + 1);
        return found;
    }

    std::string_view rest_;
};

std::uint64_t total_of(const value& at)
{
    std::uint64_t total = at.text.size();
    for (const auto& item : at.items)
        total = total * 3 + total_of(*item);
    for (const auto& [name, member] : at.members)
        total = total * 5 + name.size() + total_of(*member);
    return total;
}

/// Handles a request, and returns the number that is the answer to it.
std::uint64_t handle(std::string_view text)
{
    request const asked = parser(text).read();
    std::uint64_t answer = asked.method.size() + asked.path.size();
    for (const auto& [name, wanted] : asked.query)
        answer = answer * 7 + name.size() + wanted.size();
    if (auto const found = asked.headers.find("x-session-of-the-user");
        found != asked.headers.end())
        answer += known::hash_of(found->second);
    return answer + total_of(*asked.body);
}

void write_value(std::string& out, known::random_numbers& random, int depth)
{
    std::uint32_t const kind = depth == 0 ? 0 : random.below(4);
    if (kind < 2) {
        out.append(4 + random.below(36), static_cast<char>('a' + random.below(26)));
        return;
    }
    for (std::uint32_t i = 0, all = 2 + random.below(4); i < all; ++i) {
        out += i > 0 ? ',' : kind == 2 ? '[' : '{';
        if (kind == 3)
            out += "field_" + std::to_string(random.below(1'000)) + ':';
        write_value(out, random, depth - 1);
    }
    out += kind == 2 ? ']' : '}';
}

std::string request_text(known::random_numbers& random)
{
    std::string out = "POST /shop/articles/" + std::to_string(random.below(90'000)) + '?';
    for (std::uint32_t i = 0, all = 1 + random.below(4); i < all; ++i)
        out += std::string(i > 0 ? "&" : "") + "sort_by_column=" + std::string(i * 9 + 3, 'v');
    for (auto const* line : {"\nhost: shop.example", "\naccept: text/html, application/json",
                             "\nuser-agent: a browser of some version"})
        out += line;
    out += "\nx-session-of-the-user: " + std::string(24 + random.below(40), 's') + "\n\n{data:";
    write_value(out, random, 4);
    out += ",more:";
    write_value(out, random, 4);
    return out + '}';
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 25);
    known::random_numbers random(17);
    std::vector<std::string> texts(4'000);
    for (auto& text : texts)
        text = request_text(random);
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i)
        for (const auto& text : texts)
            sum = sum * 31 + handle(text);
    known::print(sum);
}
