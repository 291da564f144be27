// Functions whose blocks are freed before they return, and functions whose blocks outlive the call.
// Each function marks its calls, so that the tests can compare these true regions with those found
// in call stacks.
#include "../../../../include/mallard/trace/region.h"

#include <coroutine>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using text = std::string;

struct node {
    text name;
    std::vector<std::unique_ptr<node>> children;
};

[[gnu::noinline]] static std::unique_ptr<node> grow(int depth, int seed)
{
    mallard::region const marked(__func__); // the tree outlives the call
    auto made = std::make_unique<node>();
    made->name = text(20 + seed % 30, 'x');
    for (int i = 0; i < (seed + depth) % 4 && depth < 6; ++i)
        made->children.push_back(grow(depth + 1, seed * 7 + i));
    return made;
}

[[gnu::noinline]] static std::size_t render_tree(int seed)
{
    mallard::region const marked(__func__);
    return grow(0, seed + 3)->children.size();
}

[[gnu::noinline]] static std::size_t split_words(text const& line)
{
    mallard::region const marked(__func__);
    std::vector<text> words(1);
    for (char c : line)
        if (c == ' ')
            words.emplace_back();
        else
            words.back() += c;
    return words.size();
}

[[gnu::noinline]] static std::size_t batch()
{
    mallard::region const marked(__func__);
    std::vector<text> log;
    std::size_t words = 0;
    for (int i = 0; i < 10; ++i) {
        log.emplace_back(50, 'l');
        words += split_words(text(100 + i, 'w') + " a b c " + text(60, 'q'));
    }
    return words;
}

[[gnu::noinline]] static text parse_header(text const& line, int i)
{
    mallard::region const marked(__func__); // the result outlives the call
    std::map<text, text> fields;
    for (int k = 0; k < 10 + i % 5; ++k)
        fields[text(25, static_cast<char>('a' + k))] = line;
    return fields.begin()->second + text(30, 'y');
}

static std::map<int, text> cache;

[[gnu::noinline]] static std::size_t lookup(int key)
{
    mallard::region const marked(__func__); // the cache outlives the call
    text& found = cache[key % 100];
    if (found.empty() || key % 3 == 0)
        found = text(40 + key % 50, 'c');
    return found.size();
}

static text last_token;

[[gnu::noinline]] static std::size_t next_token(int i)
{
    mallard::region const marked(__func__); // the token lives until the next call
    last_token = text(30 + i % 40, 't');
    last_token.shrink_to_fit();
    return last_token.size();
}

[[gnu::noinline]] static std::size_t parse_tokens(int count)
{
    mallard::region const marked(__func__);
    std::size_t sum = 0;
    for (int i = 0; i < count; ++i)
        sum += next_token(i * 17);
    text().swap(last_token);
    return sum;
}

static std::unique_ptr<text> last_line;

[[gnu::noinline]] static std::size_t next_line(int i, int count)
{
    mallard::region const marked(__func__); // the line lives until the next call, and the last call
                                            // frees it, so all calls look like one in call stacks
    last_line = i + 1 < count ? std::make_unique<text>(40 + i % 9, 'n') : nullptr;
    return last_line ? last_line->size() : 0;
}

[[gnu::noinline]] static std::size_t read_lines(int count)
{
    mallard::region const marked(__func__);
    std::size_t sum = 0;
    for (int i = 0; i < count; ++i)
        sum += next_line(i, count);
    return sum;
}

[[gnu::noinline]] static std::size_t read_phase(int i)
{
    mallard::region const marked(__func__);
    std::vector<text> lines;
    for (int k = 0; k < 5 + i % 7; ++k)
        lines.emplace_back(32 + k, 'r');
    return lines.size();
}

[[gnu::noinline]] static std::size_t sort_phase(int i)
{
    mallard::region const marked(__func__);
    std::map<text, int> sorted;
    for (int k = 0; k < 8 + i % 3; ++k)
        sorted[text(32, static_cast<char>('a' + k))] = k;
    return sorted.size();
}

[[gnu::noinline]] static std::size_t handle_request(int i)
{
    mallard::region const marked(__func__);
    text const head(64 + i, 'h');
    return read_phase(i) + sort_phase(i) + (i % 2 != 0 ? read_phase(i + 1) : 0) + head.size();
}

[[gnu::noinline]] static std::size_t throw_some(int i)
{
    mallard::region const marked(__func__); // what is thrown outlives the call
    std::vector<text> const lines(3 + i % 4, text(40, 'e'));
    if (i % 5 == 0)
        throw text(50, 'z');
    return lines.size();
}

[[gnu::noinline]] static double norm(int i)
{
    mallard::region const marked(__func__);
    std::vector<double> const values(50 + i % 20, 1.5);
    double sum = 0;
    for (double value : values)
        sum += value * value;
    return sum;
}

[[gnu::noinline]] static std::size_t do_job(int i)
{
    mallard::region const marked(__func__);
    std::vector<text> parts;
    for (int k = 0; k < 20 + i % 3; ++k)
        parts.emplace_back(30 + k, 'j');
    return parts.size();
}

[[gnu::noinline]] static std::size_t add_to_index(std::map<text, int>& index, int i)
{
    mallard::region const marked(__func__); // the index outlives the call
    for (int k = 0; k < 20; ++k)
        index[text(20, static_cast<char>('a' + k)) + std::to_string(i)] += 1;
    return index.size();
}

/// A coroutine that makes a line at each resume.
struct lines {
    struct promise_type {
        text line;

        lines get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(text made) noexcept
        {
            line = std::move(made);
            return {};
        }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };

    std::coroutine_handle<promise_type> frame;
};

static lines generate(int i)
{
    text const kept(60 + i % 9, 'g'); // lives until the coroutine is destroyed
    for (int k = 0; k < 3; ++k)
        co_yield kept + text(40 + k, 'k');
}

[[gnu::noinline]] static lines first_line(int i)
{
    mallard::region const marked(__func__); // the frame of the coroutine outlives the call
    lines made = generate(i);
    made.frame.resume();
    return made;
}

[[gnu::noinline]] static std::size_t all_lines(int i)
{
    mallard::region const marked(__func__);
    lines const made = first_line(i);
    std::size_t sum = 0;
    for (; !made.frame.done(); made.frame.resume())
        sum += made.frame.promise().line.size();
    made.frame.destroy();
    return sum;
}

static std::size_t run()
{
    std::size_t sum = 0;
    std::vector<text> kept;
    std::map<text, int> index;
    for (int i = 0; i < 400; ++i)
        sum += render_tree(i);
    for (int i = 0; i < 60; ++i)
        sum += batch();
    for (int i = 0; i < 300; ++i)
        kept.push_back(parse_header(text(40, 'p'), i));
    for (int i = 0; i < 1200; ++i)
        sum += lookup(i);
    for (int i = 0; i < 100; ++i)
        sum += parse_tokens(10 + i % 9) + read_lines(10 + i % 9);
    for (int i = 0; i < 200; ++i) {
        text const line(70 + i % 9, 'm');
        sum += handle_request(i) + line.size();
    }
    for (int i = 0; i < 200; ++i) {
        try {
            sum += throw_some(i);
        } catch (text const& thrown) {
            sum += thrown.size();
        }
    }
    for (int i = 0; i < 300; ++i)
        sum += static_cast<std::size_t>(norm(i)) + all_lines(i);
    for (int i = 0; i < 50; ++i)
        sum += add_to_index(index, i);
    return sum;
}

int main()
{
    std::size_t const sum = run();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([] {
            for (int i = 0; i < 100; ++i)
                do_job(i);
        });
    for (std::thread& thread : threads)
        thread.join();
    std::printf("%zu\n", sum);
}
