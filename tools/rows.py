"""Reads files of benchmark results for the tools: NAME.jsonl, or NAME.jsonl.zst (compressed by zstd)."""
import subprocess
import sys


def text(file):
    """Returns the text of a file of results. The program zstd (Debian package zstd) decompresses it if necessary."""
    if file.suffix != ".zst":
        return file.read_text()
    try:
        ran = subprocess.run(["zstd", "-dcq", file], capture_output=True, text=True)
        why = ran.stderr.strip() if ran.returncode else ""
    except FileNotFoundError:
        why = "zstd is not installed; help: apt-get install zstd"
    if why:
        sys.exit(f"{file}: cannot be read: {why}")
    return ran.stdout


def of_suite(folder, suite):
    """Returns the text of all results of a suite in a directory. Uncompressed results are newer, and come last."""
    files = [folder / f"{suite}.jsonl.zst", folder / f"{suite}.jsonl"]
    found = [text(file) for file in files if file.exists()]
    if not found:
        sys.exit(f"{files[0]}: there is no such file, and no {files[1].name}")
    return "".join(found)
