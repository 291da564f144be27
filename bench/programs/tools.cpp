// Defines four programs: a database, a compiler, a version control system and a server.
#include <bench/patterns.hpp>
#include <bench/programs/programs.hpp>

#include <unistd.h>

#include <sstream>

namespace mallard::bench {
namespace {

words sqlite(temporary_folder const& folder, double share)
{
    std::ostringstream sql;
    sql << "create table t(id integer primary key, name text, value real, note text);\n"
           "with recursive n(i) as (select 1 union all select i + 1 from n where i < "
        << std::max(1000, static_cast<int>(share * 120'000))
        << ") insert into t select i, 'name ' || (i * 7919 % 10007), i / 3.0, hex(i * i) from n;\n"
           "create index by_name on t(name);\n"
           "select count(*), sum(value) from t where name like 'name 1%';\n"
           "select name, count(*), group_concat(note) from t group by name order by 2, 1 limit "
           "20;\n"
           "select count(*) from t a join t b on a.name = b.name where a.id < 2000;\n"
           "update t set note = note || name where id % 3 = 0;\n"
           "delete from t where id % 5 = 0;\n"
           "select sum(length(note)) from t;\n";
    return {program_path("sqlite3", "sqlite3"),
            ":memory:", ".read " + folder.write("work.sql", sql.str())};
}

} // namespace

const char* const source_with_regex = R"(#include <map>
#include <regex>
#include <string>
#include <vector>

std::map<std::string, std::vector<int>> index_of(std::string const& text)
{
    static std::regex const word("[a-z]+(-[a-z]+)*");
    std::map<std::string, std::vector<int>> places;
    for (auto i = std::sregex_iterator(text.begin(), text.end(), word); i != std::sregex_iterator(); ++i)
        places[i->str()].push_back(static_cast<int>(i->position()));
    return places;
}
)";

namespace {

words compiler(temporary_folder const& folder, double share)
{
    // Compiles a small program without headers if the run does only a small share of the work.
    std::string const text = share < 0.1 ? "int f(int x) { return x + 1; }\n" : source_with_regex;
    return {program_path("g++", "g++"),    "-O2", "-std=c++17", "-S", "-o", "-",
            folder.write("work.cpp", text)};
}

// Returns commits of a few files each, in the format of `git fast-import`.
std::string history(std::size_t commits)
{
    random_numbers random(11);
    std::ostringstream stream;
    for (std::size_t c = 0; c < commits; ++c) {
        stream << "commit refs/heads/main\ncommitter a <a@b> " << 1'700'000'000 + c
               << " +0000\ndata 4\nwork\n";
        for (int f = 0; f < 5; ++f) {
            std::string text;
            for (std::size_t line = 0; line < 200; ++line)
                text += "line " + std::to_string(line) + " of " +
                        std::to_string(random.below(20) == 0 ? random.next() : line * line) + "\n";
            stream << "M 100644 inline folder" << random.below(10) << "/file" << random.below(20)
                   << "\ndata " << text.size() << "\n"
                   << text;
        }
    }
    return stream.str();
}

program_function git(temporary_folder const& folder, double share)
{
    make_repository(folder, share);
    return [](temporary_folder const& where, std::string const& library) {
        std::string const command = program_path("git", "git");
        std::filesystem::remove_all(where / "clone");
        run_result all = running_program({command, "clone", "-q", "--bare", "--no-local",
                                          where / "origin", where / "clone"},
                                         library)
                             .wait();
        for (std::vector<std::string> const& more :
             {std::vector<std::string>{"repack", "-adfq", "--threads=1", "--window=30"},
              {"fsck", "--full"},
              {"rev-list", "--objects", "--all"}}) {
            std::vector<std::string> words{command, "-C", where / "clone"};
            words.insert(words.end(), more.begin(), more.end());
            run_result const next = running_program(words, library).wait();
            all.output += next.output;
            all.cpu_seconds += next.cpu_seconds;
            all.wall_seconds += next.wall_seconds;
            all.peak_kib = std::max(all.peak_kib, next.peak_kib);
        }
        return all;
    };
}

void await(std::string const& socket)
{
    for (int tries = 0; tries < 500; ++tries) {
        if (access(socket.c_str(), F_OK) == 0)
            return;
        usleep(10'000);
    }
    throw cannot_run("redis-server did not open its socket");
}

// Measures the time and memory of the server, and the wall time of the client.
program_function redis(temporary_folder const&, double share)
{
    return [share](temporary_folder const& where, std::string const& library) {
        running_program serving(redis_server(where), library);
        run_result const asked = ask_redis_server(where, share);
        run_result all = serving.wait();
        all.output = asked.output;
        all.wall_seconds = asked.wall_seconds;
        return all;
    };
}

} // namespace

void make_repository(temporary_folder const& folder, double share)
{
    std::string const git = program_path("git", "git");
    std::size_t const commits = std::max<std::size_t>(5, static_cast<std::size_t>(share * 1000));
    std::string const input = folder.write("history", history(commits));
    running_program({git, "init", "-q", "--bare", folder / "origin"}, "").wait();
    running_program(
        {"/bin/sh", "-c", git + " -C " + folder / "origin" + " fast-import --quiet <" + input}, "")
        .wait();
}

words redis_server(temporary_folder const& where)
{
    // Starts the server under the name redis-check-rdb, which is the same executable. The package
    // redis-server is not used, because it would install a service.
    std::string const program = program_path("redis-check-rdb", "redis-tools");
    std::string const socket = where / "redis";
    std::string const server = where / "redis-server";
    unlink(socket.c_str());
    unlink(server.c_str());
    if (symlink(program.c_str(), server.c_str()) != 0)
        throw cannot_run("no link can be made to " + program);
    return {server, "--port",       "0",  "--unixsocket", socket,     "--save",
            "",     "--appendonly", "no", "--logfile",    "/dev/null"};
}

words redis_requests(temporary_folder const& where, double share)
{
    std::string const requests = std::to_string(std::max(100, static_cast<int>(share * 60'000)));
    return {program_path("redis-benchmark", "redis-tools"),
            "-s",
            where / "redis",
            "-n",
            requests,
            "-P",
            "16",
            "-r",
            "100000",
            "-q",
            "--csv",
            "-t",
            "set,lpush,lrange_100,sadd,hset",
            "-d",
            "100"};
}

words redis_question(temporary_folder const& where)
{
    return {program_path("redis-cli", "redis-tools"), "-s", where / "redis", "llen", "mylist"};
}

run_result ask_redis_server(temporary_folder const& where, double share)
{
    std::string const socket = where / "redis";
    await(socket);
    run_result asked = running_program(redis_requests(where, share), "").wait();
    asked.output = running_program(redis_question(where), "").wait().output;
    running_program({program_path("redis-cli", "redis-tools"), "-s", socket, "shutdown", "nosave"},
                    "")
        .wait();
    return asked;
}

std::vector<program> tools()
{
    return {{.name = "sqlite3",
             .asks = "sqlite3 with 120,000 rows in memory: insert, index, group, join, update",
             .command = sqlite},
            {.name = "redis",
             .asks = "redis-server under redis-benchmark by a socket: seconds are the client's, "
                     "CPU time and memory the server's",
             .prepare = redis},
            {.name = "git",
             .asks = "git clone, repack, fsck and rev-list of a repository made for it",
             .prepare = git,
             .in_brief = false},
            {.name = "g++",
             .asks = "g++ -O2 -S of a file with <regex>",
             .command = compiler,
             .in_brief = false}};
}

} // namespace mallard::bench
