// follows the advice: pool AS7
//
// The program editor.cpp with one multipool for the pieces and their texts, and an object pool for
// the edits.
#include "../known.hpp"

#include <mallard/allocator.hpp>
#include <mallard/multipool.hpp>
#include <mallard/object_pool.hpp>

#include <deque>
#include <list>

using memory_type = mallard::multipool<>;
template <class T>
using from_memory = mallard::allocator<T, memory_type>;
using text_type = std::basic_string<char, std::char_traits<char>, from_memory<char>>;

/// A piece of a document, with its own text.
struct piece {
    text_type text;
};
using list_type = std::list<piece, from_memory<piece>>;

/// A change: the pieces `removed` at `at` were replaced by the pieces `added`.
struct edit {
    explicit edit(memory_type& memory) : removed(memory), added(memory) {}

    std::size_t at = 0;
    list_type removed, added;
};

class document {
public:
    document(memory_type& memory, mallard::object_pool<edit>& edits)
        : memory_(memory), edits_(edits), pieces_(memory)
    {
    }

    /// Replaces `bytes` bytes at `at` by a text.
    void replace(std::size_t at, std::size_t bytes, std::string_view text)
    {
        auto change = edits_.make(memory_);
        change->at = at;
        auto const begin = split(at);
        auto const end = split(at + bytes);
        change->removed.splice(change->removed.end(), pieces_, begin, end);
        if (!text.empty())
            change->added.push_back({text_type(text, memory_)});
        put(end, change->added);
        bytes_ += text.size() - bytes;
        undone_.clear();
        done_.push_back(std::move(change));
        if (done_.size() > 200)
            done_.pop_front();
    }

    /// Undoes the last edit. Returns false if there is none.
    bool undo()
    {
        if (done_.empty())
            return false;
        auto change = std::move(done_.back());
        done_.pop_back();
        exchange(*change, change->added, change->removed);
        undone_.push_back(std::move(change));
        return true;
    }

    /// Does the edit again that was undone last. Returns false if there is none.
    bool redo()
    {
        if (undone_.empty())
            return false;
        auto change = std::move(undone_.back());
        undone_.pop_back();
        exchange(*change, change->removed, change->added);
        done_.push_back(std::move(change));
        return true;
    }

    /// Joins all pieces, as an editor does when it saves. Discards the edits.
    std::uint64_t save()
    {
        text_type whole(memory_);
        for (const auto& part : pieces_)
            whole += part.text;
        done_.clear();
        undone_.clear();
        pieces_.clear();
        for (std::size_t at = 0; at < whole.size(); at += 400)
            pieces_.push_back({text_type(whole, at, 400, memory_)});
        return known::hash_of(whole);
    }

    std::size_t bytes() const { return bytes_; }
    std::size_t pieces() const { return pieces_.size(); }

private:
    using place = list_type::iterator;

    /// Returns the piece that begins at `at`. Cuts a piece in two if none does.
    place split(std::size_t at)
    {
        auto found = pieces_.begin();
        while (found != pieces_.end() && at >= found->text.size())
            at -= found++->text.size();
        if (at == 0)
            return found;
        auto const rest = pieces_.insert(std::next(found),
                                         {text_type(found->text, at, text_type::npos, memory_)});
        found->text = text_type(found->text, 0, at, memory_);
        return rest;
    }

    /// Inserts copies of pieces.
    void put(place where, const list_type& all) { pieces_.insert(where, all.begin(), all.end()); }

    void exchange(const edit& change, const list_type& from, const list_type& to)
    {
        std::size_t const begin_bytes = bytes_of(from);
        auto const begin = split(change.at);
        auto const end = split(change.at + begin_bytes);
        pieces_.erase(begin, end);
        put(end, to);
        bytes_ += bytes_of(to) - begin_bytes;
    }

    static std::size_t bytes_of(const list_type& all)
    {
        std::size_t bytes = 0;
        for (const auto& part : all)
            bytes += part.text.size();
        return bytes;
    }

    memory_type& memory_;
    mallard::object_pool<edit>& edits_;
    list_type pieces_;
    std::deque<mallard::box<edit>> done_;
    std::vector<mallard::box<edit>> undone_;
    std::size_t bytes_ = 0;
};

void edit_once(document& at, known::random_numbers& random)
{
    std::string_view const typed = "the words that somebody types into a document, one after the "
                                   "other, until the sentence ends";
    std::uint32_t const kind = random.below(10);
    auto const place = random.below(static_cast<std::uint32_t>(at.bytes()) + 1);
    if (kind < 6) {
        at.replace(place, 0, typed.substr(random.below(40), 1 + random.below(50)));
    } else if (kind < 8) {
        at.replace(place, std::min<std::size_t>(random.below(150), at.bytes() - place), "");
    } else {
        std::uint32_t const steps = 1 + random.below(4);
        std::uint32_t taken = 0;
        while (taken < steps && at.undo())
            ++taken;
        while (taken > random.below(3) && at.redo())
            --taken;
    }
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 30);
    known::random_numbers random(23);
    memory_type memory;
    mallard::object_pool<edit> edits;
    std::deque<document> documents;
    for (int i = 0; i < 60; ++i)
        documents.emplace_back(memory, edits);
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i)
        for (int changes = 0; changes < 20'000; ++changes) {
            document& at = documents[random.below(60)];
            edit_once(at, random);
            if (at.pieces() > 200)
                sum = sum * 31 + at.save() + at.bytes();
        }
    known::print(sum);
}
