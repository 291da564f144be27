// Defines programs that mostly allocate: interpreters with typical work.
#include <bench/programs/programs.hpp>

namespace mallard::bench {
namespace {

std::string times(double share, int count)
{
    return std::to_string(std::max(1, static_cast<int>(share * count)));
}

const char* const python_script = R"(import json, sys
total = 0
for turn in range(int(sys.argv[1])):
    people = {f"name {i}": {"age": i % 90, "tags": [str(i * k) for k in range(4)]}
              for i in range(5000)}
    text = json.dumps(people)
    again = json.loads(text)
    words = sorted(text.split())
    lengths = {}
    for word in words:
        lengths.setdefault(len(word), []).append(word.upper())
    total += len(again) + sum(map(len, lengths.values()))
print(total)
)";

words python(temporary_folder const& folder, double share, const char* allocator)
{
    return {std::string("PYTHONMALLOC=") + allocator, "PYTHONHASHSEED=1",
            program_path("python3", "python3"), folder.write("work.py", python_script),
            times(share, 20)};
}

words python_default(temporary_folder const& folder, double share)
{
    return python(folder, share, "pymalloc");
}

words python_malloc(temporary_folder const& folder, double share)
{
    return python(folder, share, "malloc");
}

const char* const lua_script = R"(
local function tree(depth)
    if depth == 0 then return {} end
    return { tree(depth - 1), tree(depth - 1) }
end
local function count(t)
    return t[1] and 1 + count(t[1]) + count(t[2]) or 1
end
local sum = 0
for turn = 1, tonumber(arg[1]) do
    sum = sum + count(tree(13))
    local words = {}
    for i = 1, 20000 do words[#words + 1] = "word " .. i end
    sum = sum + #table.concat(words, " ")
end
print(sum)
)";

words lua(temporary_folder const& folder, double share)
{
    return {program_path("lua5.4", "lua5.4"), folder.write("work.lua", lua_script),
            times(share, 40)};
}

const char* const perl_script = R"(
my $sum = 0;
for my $turn (1 .. $ARGV[0]) {
    my (%seen, @lines);
    push @lines, join(' ', map { "word" . ($_ * $turn % 977) } $_ .. $_ + 9) for 1 .. 5000;
    for my $line (@lines) { $seen{$_} .= length $line for split / /, $line; }
    $sum += length $seen{$_} for sort keys %seen;
}
print "$sum\n";
)";

words perl(temporary_folder const& folder, double share)
{
    return {"PERL_HASH_SEED=0", program_path("perl", "perl"), folder.write("work.pl", perl_script),
            times(share, 30)};
}

} // namespace

std::vector<program> interpreters()
{
    return {{"python3", "python3 making dictionaries, JSON, lists and strings", python_default},
            {"python3-malloc", "The same with PYTHONMALLOC=malloc: no allocator of its own",
             python_malloc},
            {"lua", "lua5.4 building trees and strings", lua},
            {"perl", "perl splitting lines and filling a hash", perl}};
}

} // namespace mallard::bench
