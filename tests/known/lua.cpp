// expected advice: convert AS12 or switch in run_script
//
// Runs the scripts of scripts/ with the library of Lua, each in a separate state. A script makes
// and collects many objects, and closing its state frees what is left.
#include "known.hpp"

#include <lua.hpp>

std::uint64_t run_script(const std::string& script, int round)
{
    lua_State* const state = luaL_newstate();
    luaL_openlibs(state);
    lua_pushinteger(state, round);
    lua_setglobal(state, "round");
    if (luaL_loadbuffer(state, script.data(), script.size(), "script") != LUA_OK ||
        lua_pcall(state, 0, 1, 0) != LUA_OK) {
        std::fprintf(stderr, "%s\n", lua_tostring(state, -1));
        std::exit(1);
    }
    std::uint64_t const result = known::hash_of(lua_tostring(state, -1));
    lua_close(state);
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
