-- Builds binary trees and counts their nodes.
local function tree(depth)
    if depth == 0 then
        return {}
    end
    return { tree(depth - 1), tree(depth - 1) }
end

local function count(node)
    return node[1] and 1 + count(node[1]) + count(node[2]) or 1
end

local sum = 0
for i = 1, 160 + round % 5 do
    sum = sum + count(tree(8))
end
return tostring(sum)
