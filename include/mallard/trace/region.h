/* Functions that mark regions for the recorder, for C99, any later C, and C++.
 *
 *     void convert(const char* path)
 *     {
 *         mallard_region_begin("convert");
 *         ...
 *         mallard_region_end("convert");
 *     }
 *
 * In C++, an object marks a region until the end of its scope, even if an exception ends the scope:
 *
 *     mallard::region const marked("convert");
 *
 * A trace from `mallard record` then contains the exact begin and end whenever the region ran. Call
 * stacks alone do not show both. To use marks, write `region = "convert"` and `ends = "exact"` in a
 * plan. In a program that is not recorded, a mark only tests a pointer. It needs no library.
 *
 * Marks nest, separately on each thread. The end of a region also ends the regions inside of it. So
 * if a longjmp leaves several regions, the end of an outer region ends all of them. A name is
 * truncated to 240 bytes.
 */
#ifndef MALLARD_REGION_H
#define MALLARD_REGION_H

#ifdef __cplusplus
extern "C" {
#endif

/** Marks the begin of a region in the recorder. Without the recorder, the address of this function
 * is null. */
extern void mallard_record_region_begin(const char* name) __attribute__((weak));
/** Marks the end of a region in the recorder. Without the recorder, the address of this function is
 * null. */
extern void mallard_record_region_end(const char* name) __attribute__((weak));

#ifdef __cplusplus
}
#endif

/** Marks that this thread enters the region `name`. Any thread may call this function. */
static inline void mallard_region_begin(const char* name)
{
    if (mallard_record_region_begin)
        mallard_record_region_begin(name);
}

/** Marks that this thread leaves the region `name`. An end without a begin does nothing. */
static inline void mallard_region_end(const char* name)
{
    if (mallard_record_region_end)
        mallard_record_region_end(name);
}

#ifdef __cplusplus
namespace mallard {

/** Marks a region from its construction to its destruction. The name must outlive the object. */
class region {
public:
    [[nodiscard]] explicit region(const char* name) noexcept : name_(name)
    {
        mallard_region_begin(name);
    }
    ~region() { mallard_region_end(name_); }
    region(const region&) = delete;
    region& operator=(const region&) = delete;

private:
    const char* name_;
};

} // namespace mallard
#endif

#endif
