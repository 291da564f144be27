// Tells ThreadSanitizer to ignore two decoy caches of the malloc engine. All threads without a
// cache of their own write to the `room` of the same decoy's lists, and no thread uses the written
// values.

extern "C" const char* __tsan_default_suppressions(); // NOLINT: ThreadSanitizer defines this name

extern "C" const char* __tsan_default_suppressions()
{
    return "race:mallard::engine::empty_thread_cache\nrace:mallard::engine::visited_thread_cache\n";
}
