//! Tests that, without the feature `override`, C code in the process still calls the malloc of the
//! C library.
#![cfg(all(mallard_engine, not(feature = "override")))]

use mallard_malloc::{statistics, Mallard};

#[global_allocator]
static A: Mallard = Mallard;

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut u8;
    fn free(block: *mut u8);
}

#[test]
fn in_a_rust_program_with_mallard_c_code_still_uses_the_malloc_of_the_c_library() {
    let before = statistics().large_bytes;
    // SAFETY: the block is written within its size and freed once.
    unsafe {
        let block = malloc(64 << 20);
        block.write(1);
        assert!(statistics().large_bytes < before + (64 << 20));
        free(block);
    }
    let rusts = vec![1u8; 64 << 20];
    assert!(statistics().large_bytes >= before + rusts.len());
}

#[test]
fn environment_variables_have_the_same_effect_as_in_the_c_malloc() {
    let run = |name: &str, value: &str| {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "in_a_rust_program_with_mallard_c_code_still_uses_the_malloc_of_the_c_library",
            ])
            .env(name, value)
            .output()
            .unwrap()
    };
    let json = run("MALLARD_STATS", "json");
    assert!(json.status.success());
    let says = String::from_utf8_lossy(&json.stderr).into_owned();
    assert!(says.contains("{\"blocks_live\":"), "{says}");
    let limited = run("MALLARD_LIMIT", "32M");
    assert!(!limited.status.success());
    for (name, wrong) in [
        ("MALLARD_LIMIT", "much"),
        ("MALLARD_LIMIT", "-1"),
        ("MALLARD_LIMIT", "1K"),
        ("MALLARD_STATS", "xml"),
        ("MALLARD_HUGEPAGES", "yes"),
        ("MALLARD_CALLS", "1"),
    ] {
        let says = run(name, wrong).stderr;
        let says = String::from_utf8_lossy(&says).into_owned();
        let told = format!("mallard: {name}={wrong} is ");
        assert_eq!(says.matches(&told).count(), 1, "{says}");
    }
}
