// Makes ThreadSanitizer ignore the trap caches of the malloc engine, which threads share. The lists
// of a trap cache look empty to malloc and full to free, so every call takes the slow path.
// Many threads write to the `room` of the same lists, and no thread uses the written values.

extern "C" const char* __tsan_default_suppressions(); // NOLINT: ThreadSanitizer defines this name

extern "C" const char* __tsan_default_suppressions()
{
    return "race:mallard::engine::empty_thread_cache\nrace:mallard::engine::visited_thread_cache\n"
           "race:mallard::engine::watching_thread_cache\n";
}
