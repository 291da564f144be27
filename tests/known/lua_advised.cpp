// follows the advice: convert AS12 in run_script
//
// The program lua.cpp with a multipool over an arena for each script. The state is not closed,
// because no script has finalizers. Releasing the multipool frees all of the state.
#include "known.hpp"

#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>

#include <lua.hpp>

#include <cstring>

using memory_of_script = mallard::multipool<mallard::arena<>>;

void* resize(void* user_data, void* old, std::size_t before, std::size_t after)
{
    auto& memory = *static_cast<memory_of_script*>(user_data);
    if (old == nullptr)
        return after > 0 ? memory.try_allocate({after, 16}) : nullptr;
    void* larger = nullptr;
    if (after > 0) {
        larger = memory.try_allocate({after, 16});
        if (larger == nullptr)
            return nullptr;
        std::memcpy(larger, old, std::min(before, after));
    }
    memory.deallocate(old, {before, 16});
    return larger;
}

std::uint64_t run_script(const std::string& script, int round)
{
    memory_of_script memory;
    lua_State* const state = lua_newstate(resize, &memory);
    luaL_openlibs(state);
    lua_pushinteger(state, round);
    lua_setglobal(state, "round");
    if (luaL_loadbuffer(state, script.data(), script.size(), "script") != LUA_OK ||
        lua_pcall(state, 0, 1, 0) != LUA_OK) {
        std::fprintf(stderr, "%s\n", lua_tostring(state, -1));
        std::exit(1);
    }
    std::uint64_t const result = known::hash_of(lua_tostring(state, -1));
    memory.release();
    return result;
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 8);
    auto const scripts = known::texts(KNOWN_SCRIPTS, ".lua");
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i)
        for (const auto& script : scripts)
            sum = sum * 31 + run_script(script, i);
    known::print(sum);
}
