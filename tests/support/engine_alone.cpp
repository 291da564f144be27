// What ThreadSanitizer is to overlook: threads that have no lists count on those of one front that
// stands for all of them, in the engine of malloc, and nobody ever reads what they count.

extern "C" const char* __tsan_default_suppressions(); // NOLINT: its name is ThreadSanitizer's

extern "C" const char* __tsan_default_suppressions()
{
    return "race:mallard::engine::empty_thread_cache\nrace:mallard::engine::visited_thread_cache\n";
}
