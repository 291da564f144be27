// expected advice: switch
//
// Edits several documents in turn. A document is a table of pieces, and each of its edits can be
// undone and done again. Pieces and edits are allocated and freed one by one, until the program
// ends. A multipool saves less than a malloc, because each text in it is 8 bytes larger.
#include "../known.hpp"

#include <deque>
#include <list>
#include <memory>

/// A piece of a document, with its own text.
struct piece {
    std::string text;
};

/// A change: the pieces `removed` at `at` were replaced by the pieces `added`.
struct edit {
    std::size_t at;
    std::list<piece> removed, added;
};

class document {
public:
    /// Replaces `bytes` bytes at `at` by a text.
    void replace(std::size_t at, std::size_t bytes, std::string_view text)
    {
        auto change = std::make_unique<edit>();
        change->at = at;
        auto const begin = split(at);
        auto const end = split(at + bytes);
        change->removed.splice(change->removed.end(), pieces_, begin, end);
        if (!text.empty())
            change->added.push_back({std::string(text)});
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
        std::string whole;
        for (const auto& part : pieces_)
            whole += part.text;
        done_.clear();
        undone_.clear();
        pieces_.clear();
        for (std::size_t at = 0; at < whole.size(); at += 400)
            pieces_.push_back({whole.substr(at, 400)});
        return known::hash_of(whole);
    }

    std::size_t bytes() const { return bytes_; }
    std::size_t pieces() const { return pieces_.size(); }

private:
    using place = std::list<piece>::iterator;

    /// Returns the piece that begins at `at`. Cuts a piece in two if none does.
    place split(std::size_t at)
    {
        auto found = pieces_.begin();
        while (found != pieces_.end() && at >= found->text.size())
            at -= found++->text.size();
        if (at == 0)
            return found;
        auto const rest = pieces_.insert(std::next(found), {found->text.substr(at)});
        found->text = found->text.substr(0, at);
        return rest;
    }

    /// Inserts copies of pieces.
    void put(place where, const std::list<piece>& all)
    {
        pieces_.insert(where, all.begin(), all.end());
    }

    void exchange(const edit& change, const std::list<piece>& from, const std::list<piece>& to)
    {
        std::size_t const begin_bytes = bytes_of(from);
        auto const begin = split(change.at);
        auto const end = split(change.at + begin_bytes);
        pieces_.erase(begin, end);
        put(end, to);
        bytes_ += bytes_of(to) - begin_bytes;
    }

    static std::size_t bytes_of(const std::list<piece>& all)
    {
        std::size_t bytes = 0;
        for (const auto& part : all)
            bytes += part.text.size();
        return bytes;
    }

    std::list<piece> pieces_;
    std::deque<std::unique_ptr<edit>> done_;
    std::vector<std::unique_ptr<edit>> undone_;
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
    std::vector<document> documents(60);
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i)
        for (int edits = 0; edits < 20'000; ++edits) {
            document& at = documents[random.below(60)];
            edit_once(at, random);
            if (at.pieces() > 200)
                sum = sum * 31 + at.save() + at.bytes();
        }
    known::print(sum);
}
