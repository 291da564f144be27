-- Counts the words of a text that the script makes.
local seed = 7 + round
local function random(n)
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed // 65536 % n
end

local counts = {}
for line = 1, 2400 do
    local words = {}
    for i = 1, 12 do
        words[i] = string.format("word%d", random(400))
    end
    for word in table.concat(words, " "):gmatch("%w+") do
        counts[word] = (counts[word] or 0) + 1
    end
end

local names = {}
for name in pairs(counts) do
    names[#names + 1] = name
end
table.sort(names)
local lines = {}
for i, name in ipairs(names) do
    lines[i] = name .. "=" .. counts[name]
end
return table.concat(lines, ",")
