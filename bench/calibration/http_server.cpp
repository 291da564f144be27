#include <bench/calibration/programs.hpp>

namespace mallard::bench {
namespace {

// A server that keeps the last 2000 documents, and answers with the counts of their words. SIGTERM
// ends it.
const char* const server = R"(import asyncio, collections, json, signal, sys

documents = collections.OrderedDict()

def answer(path, body):
    document = json.loads(body)
    documents[path] = document
    if len(documents) > 2000:
        documents.popitem(last=False)
    counts = collections.Counter(document["text"].split())
    rows = [{"word": word, "count": count} for word, count in sorted(counts.items())]
    return json.dumps({"path": path, "words": rows}).encode()

async def serve(reader, writer):
    try:
        while line := await reader.readline():
            path, length = line.split()[1].decode(), 0
            while (header := await reader.readline()).strip():
                name, value = header.decode().split(":", 1)
                if name.lower() == "content-length":
                    length = int(value)
            body = answer(path, await reader.readexactly(length))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    finally:
        writer.close()

async def main():
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    listening = await asyncio.start_unix_server(serve, sys.argv[1])
    await ended.wait()
    listening.close()

asyncio.run(main())
)";

// Sends requests by four connections at a time, and prints how many bytes were answered.
const char* const client = R"(import asyncio, json, sys

async def ask(number, requests):
    reader, writer = await asyncio.open_unix_connection(sys.argv[1])
    received = 0
    for i in range(requests):
        text = " ".join(f"word{(i * k * 7919 + number) % 997}" for k in range(100))
        body = json.dumps({"text": text}).encode()
        writer.write(b"POST /%d/%d HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (number, i, len(body)) + body)
        length = 0
        while (header := await reader.readline()).strip():
            if header.lower().startswith(b"content-length:"):
                length = int(header.split(b":")[1])
        received += len(await reader.readexactly(length))
    writer.close()
    return received

async def main():
    requests = int(sys.argv[2]) // 4
    print(sum(await asyncio.gather(*(ask(number, requests) for number in range(4)))))

asyncio.run(main())
)";

words http(temporary_folder const& folder, double)
{
    return {"PYTHONMALLOC=malloc", "PYTHONHASHSEED=1", program_path("python3", "python3"),
            folder.write("server.py", server), folder / "http"};
}

std::string http_load(temporary_folder const& folder, double share)
{
    words const sending{program_path("python3", "python3"), folder.write("client.py", client),
                        folder / "http",
                        std::to_string(std::max(40, static_cast<int>(share * 2500)))};
    return "test -S " + folder / "http" + " && " + shell_command(sending);
}

} // namespace

workload http_server()
{
    return {.name = "http",
            .asks = "A server of HTTP in python3 with PYTHONMALLOC=malloc: JSON in, JSON out",
            .command = http,
            .load = http_load,
            .is_python = true};
}

} // namespace mallard::bench
