-- Moves money between accounts. Uses objects with methods, and closures that are kept.
local account = {}
account.__index = account

function account.new(name, money)
    return setmetatable({ name = name, money = money, history = {} }, account)
end

function account:move(to, money)
    self.money = self.money - money
    to.money = to.money + money
    local at = #self.history + 1
    self.history[at] = function()
        return self.name .. "->" .. to.name .. ":" .. money
    end
    if at > 20 then
        self.history = {}
    end
end

local all = {}
for i = 1, 50 do
    all[i] = account.new("account" .. i, 100 + round)
end
for i = 1, 24000 do
    all[i * 7 % 50 + 1]:move(all[i * 13 % 50 + 1], i % 17)
end

local lines = {}
for _, one in ipairs(all) do
    for _, entry in ipairs(one.history) do
        lines[#lines + 1] = entry()
    end
    lines[#lines + 1] = one.money
end
return table.concat(lines, ";")
