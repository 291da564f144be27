//! The code of cards in C. A library that takes an allocator as a parameter is recognized by the names
//! of its functions. All other programs call the allocator directly.

/// A library that takes an allocator as a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Library {
    /// cmark and cmark-gfm: three functions, without the size of the old block (`cmark_mem`).
    Cmark,
    /// Lua: one function, with both sizes (`lua_Alloc`).
    Lua,
    /// No library, or an unknown one.
    #[default]
    None,
}

/// The text with Mallard, for a rule and the library that allocates.
pub fn mallard(rule: &str, library: Library) -> Option<&'static str> {
    let is_arena = matches!(rule, "wink-out-arena" | "arena");
    let is_multipool = matches!(rule, "wink-out-multipool-over-arena" | "multipool-over-arena");
    Some(match (rule, library) {
        ("object-pool", _) => OBJECT_POOL,
        ("multipool", _) => MULTIPOOL,
        (_, Library::Cmark) if is_arena || is_multipool => CMARK,
        (_, Library::Lua) if is_arena || is_multipool => LUA,
        _ if is_arena => ARENA,
        _ if is_multipool => MULTIPOOL_OF_A_CALL,
        _ => return None,
    })
}

impl Library {
    /// The library that a function belongs to.
    pub fn of(function: &str) -> Library {
        let is_lua =
            |rest: &str| rest.trim_start_matches(|c: char| c.is_ascii_uppercase()).starts_with('_');
        match function {
            _ if function.starts_with("cmark_") => Library::Cmark,
            _ if function.strip_prefix("lua").is_some_and(is_lua) => Library::Lua,
            _ => Library::None,
        }
    }
}

const ARENA: &str = r#"
/* In @where@ */
#include <mallard/c/mallard.h>
#include <string.h>

size_t @name@(mallard_arena* memory, const char* input);

/* `memory` is made once, by mallard_arena_create(NULL). */
size_t @name@(mallard_arena* memory, const char* input)
{
    size_t length = strlen(input);
    char* copy = (char*)mallard_arena_allocate(memory, length + 1, 1); /* instead of malloc */
    if (copy != NULL)
        memcpy(copy, input, length + 1);
    mallard_arena_reset(memory); /* instead of all calls of free */
    return length;
}
"#;

const MULTIPOOL_OF_A_CALL: &str = r#"
/* In @where@ */
#include <mallard/c/mallard.h>
#include <string.h>

size_t @name@(mallard_multipool* memory, const char* input);

/* `memory` is made once, by mallard_multipool_create(NULL). */
size_t @name@(mallard_multipool* memory, const char* input)
{
    size_t length = strlen(input);
    char* copy = (char*)mallard_multipool_allocate(memory, length + 1, 1); /* instead of malloc */
    if (copy != NULL)
        memcpy(copy, input, length + 1);
    mallard_multipool_free(memory, copy, length + 1, 1); /* instead of free: used again at once */
    mallard_multipool_reset(memory); /* frees what is left, at the end of the call */
    return length;
}
"#;

const MULTIPOOL: &str = r#"
/* In @where@ */
#include <mallard/c/mallard.h>

struct structure {
    mallard_multipool* memory; /* made once for all calls, by mallard_multipool_create(NULL) */
};

void* @name@(struct structure* of, size_t bytes);
void remove_block(struct structure* of, void* block, size_t bytes);

void* @name@(struct structure* of, size_t bytes)
{
    return mallard_multipool_allocate(of->memory, bytes, 0); /* instead of malloc */
}

void remove_block(struct structure* of, void* block, size_t bytes)
{
    mallard_multipool_free(of->memory, block, bytes, 0); /* instead of free, with the size */
}
"#;

const OBJECT_POOL: &str = r#"
/* In @where@ */
#include <mallard/c/mallard.h>

struct object { /* the type that is made there */
    long id;
    double value;
};

/* `pool` is made once, by mallard_pool_create, with .block_bytes = sizeof(struct object). */
struct object* @name@(mallard_pool* pool, long id);
void remove_object(mallard_pool* pool, struct object* gone);

struct object* @name@(mallard_pool* pool, long id)
{
    struct object* made = (struct object*)mallard_pool_allocate(pool); /* instead of malloc */
    if (made != NULL)
        made->id = id;
    return made;
}

void remove_object(mallard_pool* pool, struct object* gone)
{
    mallard_pool_free(pool, gone); /* instead of free */
}
"#;

const CMARK: &str = r#"
/* In @where@ */
/* The library takes a `cmark_mem`: {take, resize, give}. */
#include <mallard/c/mallard.h>
#include <string.h>

void* take(size_t count, size_t bytes);
void* resize(void* block, size_t bytes);
void give(void* block);

mallard_arena* memory; /* made once, by mallard_arena_create(NULL) */
enum { head = 16 };    /* before each block: its size, which `resize` needs */

void* take(size_t count, size_t bytes)
{
    size_t const all = count * bytes;
    char* block = NULL;
    if (bytes == 0 || count <= ((size_t)-1 - head) / bytes)
        block = (char*)mallard_arena_allocate(memory, head + all, head);
    if (block == NULL)
        return NULL;
    memcpy(block, &all, sizeof all);
    return memset(block + head, 0, all);
}

void* resize(void* block, size_t bytes)
{
    size_t old = 0;
    if (block != NULL)
        memcpy(&old, (char*)block - head, sizeof old);
    void* const moved = take(1, bytes);
    if (moved != NULL && block != NULL)
        memcpy(moved, block, old < bytes ? old : bytes);
    return moved;
}

void give(void* block)
{
    (void)block; /* mallard_arena_reset(memory) after each document frees everything */
}
"#;

const LUA: &str = r#"
/* In @where@ */
/* The library takes a `lua_Alloc`: lua_newstate(allocate, memory). */
#include <mallard/c/mallard.h>
#include <string.h>

void* allocate(void* memory, void* block, size_t old_bytes, size_t bytes);

/* `memory` is made once, by mallard_multipool_create(NULL). Instead of lua_close, which frees each
 * object, mallard_multipool_reset(memory) drops a state at once, if no script needs a __gc. */
void* allocate(void* memory, void* block, size_t old_bytes, size_t bytes)
{
    mallard_multipool* const from = (mallard_multipool*)memory;
    void* moved = NULL;
    if (bytes > 0) {
        moved = mallard_multipool_allocate(from, bytes, 0);
        if (moved == NULL)
            return NULL;
        if (block != NULL)
            memcpy(moved, block, old_bytes < bytes ? old_bytes : bytes);
    }
    if (block != NULL)
        mallard_multipool_free(from, block, old_bytes, 0);
    return moved;
}
"#;
