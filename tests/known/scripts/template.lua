-- Fills templates, and keeps the last 20 pages. Uses patterns, replacements and buffers of strings.
local template = "<li id='{id}' class='{class}'><a href='/{path}'>{title}</a></li>"
local pages = {}
for page = 1, 320 do
    local items = {}
    for i = 1, 15 do
        local values = {
            id = page * 100 + i,
            class = i % 2 == 0 and "even" or "odd",
            path = "page/" .. page .. "/" .. i + round,
            title = ("item "):rep(i % 4 + 1),
        }
        items[i] = template:gsub("{(%w+)}", values)
    end
    pages[page % 20] = "<ul>\n" .. table.concat(items, "\n") .. "</ul>\n"
end
return table.concat(pages, "", 0, 19)
