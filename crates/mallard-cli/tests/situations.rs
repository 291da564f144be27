//! Tests `mallard record` from end to end with programs that do unusual things. Checks the status,
//! the messages, and the number of recorded blocks.
//!
//! `tests/record/recorder_test.py` tests the recorder alone with the same programs, in more detail.

use crate::support::{self, length, skip, Folder, THREE_BLOCKS};
use mallard_trace::tables::schema::THREADS;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the path of a program's source file.
fn source(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = here.join("tests/programs").join(name);
    if own.exists() {
        own
    } else {
        here.join("../../tests/record").join(name)
    }
}

/// Compiles the program whose first argument selects what it does.
fn acts(folder: &Folder) -> String {
    let options = ["-O1", "-D_GNU_SOURCE", "-pthread", "-Wno-unused-result"];
    folder.compile_file("acts", &source("programs/acts.c"), &options)
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn every_kind_of_program_exit_is_recorded() {
    let folder = Folder::new();
    let acts = acts(&folder);
    let ended = folder.record(&[], &[&acts, "quick_exit"]);
    assert_eq!(ended.is_whole(7).of([70001]), [1]);
    let aborted = folder.compile(
        "aborted",
        "#include <stdlib.h>\nint main(void) { free(malloc(70001)); abort(); }",
        &[],
    );
    let ended = folder.record(&[], &[&aborted]);
    assert_eq!(ended.is_whole(128 + 6).of([70001]), [1]);
    assert!(ended.ran.errors().contains("ended by signal 6"), "{}", ended.ran.errors());
    let closed = folder.record(&[], &[&acts, "close_all"]);
    assert_eq!(closed.is_whole(0).of([70001]), [100_000]);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn child_processes_are_recorded_if_they_are_followed() {
    let folder = Folder::new();
    let acts = acts(&folder);
    let fork = ["--follow", "fork"];
    let all = ["--follow", "fork,exec"];
    let alone = folder.record(&[], &[&acts, "fork"]);
    assert_eq!(alone.is_whole(0).of([70001, 70002, 70003]), [1, 0, 1000]);
    let forked = folder.record(&fork, &[&acts, "fork"]);
    assert_eq!(forked.is_whole(0).of([70001, 70002, 70003]), [1, 1000, 1000]);
    assert_eq!(forked.processes, ["start", "fork"]);
    // A child of vfork shares the memory of its parent until it runs another program.
    let vforked = folder.record(&fork, &[&acts, "vfork"]);
    assert_eq!(vforked.is_whole(0).of([70001, 70003]), [1, 1]);
    assert_eq!(vforked.processes, ["start"]);
    for (act, begins) in [("exec", "exec"), ("spawn", "fork")] {
        let executed = folder.record(&all, &[&acts, act]);
        assert_eq!(executed.is_whole(0).of([70001, 70005]), [1, 1], "{act}");
        assert_eq!(executed.processes, ["start", begins]);
        assert_eq!(folder.record(&[], &[&acts, act]).is_whole(0).of([70005]), [0], "{act}");
    }
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn many_simultaneous_processes_are_recorded() {
    let folder = Folder::new();
    let acts = acts(&folder);
    let follow = ["--follow", "fork"];
    let bomb = folder.record(&follow, &[&acts, "bomb", "8"]);
    assert_eq!(bomb.is_whole(0).of([70001]), [256]);
    assert_eq!(bomb.processes.len(), 256);
    let threads = folder.record(&follow, &[&acts, "fork_of_threads"]);
    assert_eq!(threads.is_whole(0).of([70002, 70003]), [40, 20000]);
    assert_eq!(threads.processes.len(), 41);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_program_with_many_threads_is_recorded() {
    let folder = Folder::new();
    let acts = acts(&folder);
    let live = folder.record(&[], &[&acts, "live_threads", "1000"]);
    assert_eq!(live.is_whole(0).of([70001, 70002]), [1000, 1000]);
    let short = folder.record(&[], &[&acts, "short_threads", "10000"]);
    assert_eq!(short.is_whole(0).of([70001]), [10_000]);
    let ends = short.trace.table(&THREADS).unwrap().i64s("t1").unwrap();
    assert_eq!(ends.iter().filter(|&&t| t >= 0).count(), 10_000);
    // Destructors of a thread allocate and free after the thread's function has returned.
    let late = folder.record(&[], &[&acts, "late_frees"]);
    assert_eq!(late.is_whole(0).of([70001, 70002, 70003]), [20, 60, 80]);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn deep_and_corrupt_call_stacks_are_recorded() {
    let folder = Folder::new();
    let acts = acts(&folder);
    let deep = folder.record(&["--stacks", "caller"], &[&acts, "deep", "100000"]);
    assert_eq!(deep.is_whole(0).of([70001]), [100_001]);
    let deep = folder.record(&[], &[&acts, "deep", "100000"]);
    assert_eq!(deep.is_whole(0).of([70001]), [100_001]);

    let fibers = folder.compile_file("fibers", &source("fibers.c"), &[]);
    let fibers = folder.record(&[], &[&fibers]);
    assert_eq!(fibers.is_whole(0).of([70001, 70003, 70004, 1]), [1000, 1000, 10, 0]);
    let exceptions = folder.compile_file("exceptions", &source("exceptions.cpp"), &["-std=c++20"]);
    let exceptions = folder.record(&[], &[&exceptions]);
    assert_eq!(exceptions.is_whole(0).of([70001, 70002, 70003]), [1000, 1000, 20]);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn allocations_before_and_after_main_are_recorded() {
    let folder = Folder::new();
    let module = ["-shared", "-fPIC"];
    let plugin = folder.compile_file("plugin.so", &source("plugins/plugin.c"), &module);
    let early = folder.compile_file("early", &source("programs/early.cpp"), &["-std=c++20"]);
    let program = ["env", &format!("PLUGIN={plugin}"), &early];
    let early = folder.record(&["--follow", "exec"], &program);
    assert_eq!(early.is_whole(0).of([70001, 70002, 70003, 70011, 70012]), [1; 5]);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn thousands_of_simultaneous_mapping_changes_do_not_corrupt_the_event_log() {
    let folder = Folder::new();
    let mappings = folder.compile_file("mappings", &source("mappings.c"), &[]);
    let recording = folder.record(&[], &[&mappings]);
    assert_eq!(recording.is_whole(0).of([70001]), [200]);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn plugins_loaded_with_rtld_deepbind_are_recorded() {
    let folder = Folder::new();
    let module = ["-shared", "-fPIC"];
    let plugin = folder.compile_file("plugin.so", &source("plugins/plugin.c"), &module);
    let loaded = folder.record(&[], &[&acts(&folder), "plugin", &plugin]);
    // The second of three libraries is loaded with RTLD_DEEPBIND.
    assert_eq!(loaded.is_whole(0).of([70009, 70011, 70012, 70013]), [1, 3, 3, 3]);

    let make = "#include <stdlib.h>\nvoid* make(void) { return malloc(70001); }";
    let make = folder.compile("make.so", make, &module);
    let loader = folder.compile_file("loader", &source("loader.c"), &[]);
    assert_eq!(folder.record(&[], &[&loader, &make]).is_whole(0).of([70001]), [600]);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn allocations_that_bypass_the_recorder_are_reported_as_lost() {
    let folder = Folder::new();
    let make = "#include <stddef.h>\nvoid* __libc_malloc(size_t);\n\
                void* make(void) { return __libc_malloc(70001); }";
    let make = folder.compile("make.so", make, &["-shared", "-fPIC"]);
    let loader = folder.compile_file("loader", &source("loader.c"), &[]);
    let loaded = folder.record(&[], &[&loader, &make]);
    assert_eq!((loaded.ran.status(), loaded.of([70001])), (0, [0]));
    assert_eq!(loaded.trace.manifest().counts.unknown_frees, 600);
    let errors = loaded.ran.errors();
    assert!(errors.contains("lost: the allocations of 600 blocks that were freed"), "{errors}");
    assert!(errors.contains("__libc_malloc"), "{errors}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_recorded_library_finds_its_plugins_by_its_own_runpath() {
    let folder = Folder::new();
    fs::create_dir(folder.path("plugins")).unwrap();
    let plugin = "#include <stdlib.h>\nvoid run(void) { free(malloc(70001)); }";
    folder.compile("plugins/libplugin.so", plugin, &["-shared", "-fPIC"]);
    let library = r#"
        #include <dlfcn.h>
        int load(void) {
            void* const plugin = dlopen("libplugin.so", RTLD_NOW | RTLD_DEEPBIND);
            void (*const run)(void) = plugin ? (void (*)(void))dlsym(plugin, "run") : 0;
            if (run) run();
            return !run;
        }
    "#;
    // The RUNPATH applies to the library alone. The program itself has no RUNPATH for this
    // directory.
    let runpath = ["-shared", "-fPIC", "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/plugins"];
    folder.compile("libhost.so", library, &runpath);
    let program = "int load(void);\nint main(void) { return load(); }";
    let linked = ["-L.", "-lhost", "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN"];
    let program = folder.compile("program", program, &linked);
    assert_eq!(folder.record(&[], &[&program]).is_whole(0).of([70001]), [1]);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_recorded_signal_handler_may_allocate() {
    let folder = Folder::new();
    let acts = acts(&folder);
    let handler = source("preloads/handler_memory.c");
    let memory = folder.compile_file("memory.so", &handler, &["-shared", "-fPIC", "-D_GNU_SOURCE"]);
    let arguments = ["record", "-o", "a", "--no-symbols", "--", &acts, "signals"];
    let ran = folder.command(support::MALLARD).args(arguments).env("LD_PRELOAD", memory).output();
    let ran = support::Ran(ran.unwrap());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let counts = &folder.manifest("a.mallard")["counts"];
    assert!(counts["allocations"].as_u64().unwrap() > 1000, "{counts}");
    // Events of signal handlers that interrupted the recorder are lost, and the manifest counts them.
    let nested = folder.manifest("a.mallard")["losses"]["nested"].as_u64().unwrap();
    assert_eq!(ran.errors().contains("in signal handlers"), nested > 0, "{}", ran.errors());
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_program_that_restricts_its_system_calls_is_recorded() {
    let folder = Folder::new();
    let filtered = folder.compile_file("filtered", &source("filtered.c"), &[]);
    let recorded = folder.record(&[], &[&filtered]);
    if recorded.ran.status() == 77 {
        return skip("no filter of system calls");
    }
    assert_eq!(recorded.is_whole(9).of([70001]), [100_000]);
    // Runs mallard itself in a sandbox that forbids shared memory.
    let caged = folder.command(&filtered).args([support::MALLARD, "record", "--", "true"]).output();
    support::Ran(caged.unwrap()).refuses(125, "cannot create the shared memory");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_stripped_program_is_recorded() {
    let folder = Folder::new();
    let stripped = folder.compile("stripped", THREE_BLOCKS, &["-s"]);
    let recorded = folder.record(&[], &[&stripped]);
    assert_eq!(recorded.is_whole(7).of([111, 222, 333]), [1, 1, 1]);
    let sites = folder.mallard(&["sites", "recorded"]).out();
    assert!(sites.contains("a function of stripped without symbols (+0x"), "{sites}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn the_c_code_of_a_go_program_is_recorded() {
    let folder = Folder::new();
    let program = folder.compile("three", THREE_BLOCKS, &[]);
    fs::write(folder.path("note"), "id").unwrap();
    let note = ["--add-section", ".note.go.buildid=note", &program, "cgo"];
    assert!(folder.command("objcopy").args(note).status().unwrap().success());
    let recorded = folder.record(&[], &["./cgo"]);
    assert_eq!(recorded.is_whole(7).of([111]), [1]);
    let errors = recorded.ran.errors();
    let said = "it is a Go program, so only its C code calls malloc\n  the program is recorded";
    assert!(errors.contains(said), "{errors}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn an_unwritable_directory_is_rejected_before_the_program_starts() {
    let folder = Folder::new();
    let nobody = nix::unistd::Uid::from_raw(65534);
    let mallard = folder.path("mallard");
    fs::copy(support::MALLARD, &mallard).unwrap();
    fs::create_dir(folder.path("closed")).unwrap();
    for (name, mode) in [("closed", 0o555), ("mallard", 0o755), (".", 0o755)] {
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = folder.command(mallard.to_str().unwrap());
    command.args(["record", "-o", "closed/a", "--", "touch", "/dev/shm/started"]);
    if nix::unistd::getuid().is_root() {
        use std::os::unix::process::CommandExt;
        command.uid(nobody.as_raw()).gid(nobody.as_raw());
        let recorder = folder.path("libmallard-record.so");
        fs::copy(std::env::var_os("MALLARD_RECORDER").unwrap(), &recorder).unwrap();
        command.env("MALLARD_RECORDER", recorder);
    }
    let ran = support::Ran(command.output().unwrap());
    ran.refuses(125, "cannot write closed/a.stream: permission denied");
    assert!(!Path::new("/dev/shm/started").exists());
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn system_limits_are_reported_before_the_program_starts() {
    let folder = Folder::new();
    let limited = |limit: &str| {
        let script = format!("ulimit {limit}; exec \"$0\" record -- touch started");
        let mut command = folder.command("bash");
        support::Ran(command.args(["-c", &script, support::MALLARD]).output().unwrap())
    };
    limited("-v 200000").refuses(125, "the address space is limited to 195 MiB");
    limited("-f 100").refuses(125, "cannot create the shared memory");
    limited("-n 6").refuses(125, "too many open files");
    assert!(!folder.path("started").exists());
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn an_installed_command_finds_its_recorder() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("bin")).unwrap();
    let mallard = folder.path("bin/mallard");
    fs::copy(support::MALLARD, &mallard).unwrap();
    let ran = |recorder: Option<&str>| {
        let mut command = folder.command(mallard.to_str().unwrap());
        command.args(["record", "--", "true"]).env_remove("MALLARD_RECORDER");
        recorder.map(|path| command.env("MALLARD_RECORDER", path));
        support::Ran(command.output().unwrap())
    };
    ran(None).refuses(125, "libmallard-record.so is not next to");
    ran(Some("/no/such")).refuses(125, "which MALLARD_RECORDER names, cannot be used");
    ran(Some("/etc/passwd")).refuses(125, "it is not a library");
    let recorder = std::env::var_os("MALLARD_RECORDER").unwrap();
    let debian = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    for place in [debian.as_str(), "lib64", "lib"] {
        let place = folder.path(place).join("mallard");
        fs::create_dir_all(&place).unwrap();
        fs::copy(&recorder, place.join("libmallard-record.so")).unwrap();
        assert_eq!(ran(None).status(), 0, "{}", place.display());
        fs::remove_dir_all(place).unwrap();
    }
}

#[test]
fn an_installed_command_with_missing_files_explains_how_to_install_them() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("bin")).unwrap();
    let mallard = folder.path("bin/mallard");
    fs::copy(support::MALLARD, &mallard).unwrap();
    let says = |words: &[&str], component: &str| {
        let mut command = folder.command(mallard.to_str().unwrap());
        for variable in ["MALLARD_RECORDER", "MALLARD_REPLAY", "MALLARD_MALLOC"] {
            command.env_remove(variable);
        }
        let prefix = folder.path("").canonicalize().unwrap();
        let install = format!("--prefix {} --component {component}", prefix.display());
        let ran = support::Ran(command.args(words).output().unwrap());
        ran.refuses(125, &format!("&& cmake --install build {install}, or MALLARD_"));
    };
    says(&["record", "--", "true"], "record");
    says(&["try", "--allocator", "mallard", "--", "true"], "malloc");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn corrupt_traces_are_rejected_or_shown() {
    let folder = Folder::new();
    folder.record(&[], &["perl", "-e", "my %h; $h{$_} = 'x' x $_ for 1..99"]).is_whole(0);
    let files = ["manifest.json", "sites.parquet", "stacks.parquet", "frames.parquet"];
    for (turn, file) in files.into_iter().cycle().take(4 * length(20) as usize).enumerate() {
        let path = folder.path("recorded.mallard").join(file);
        let whole = fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        let at = turn * 7919 % whole.len();
        match turn % 3 {
            0 => damaged.truncate(at),
            1 => damaged[at] ^= 1 << (turn % 8),
            _ => damaged[at..(at + 8).min(whole.len())].fill(0xff),
        }
        fs::write(&path, damaged).unwrap();
        for command in ["sites", "stats"] {
            let ran = folder.mallard(&[command, "recorded"]);
            match ran.status() {
                0 => assert_eq!(ran.errors(), ""),
                _ => ran.refuses(3, "is corrupt"),
            }
        }
        fs::write(&path, whole).unwrap();
    }
    fs::remove_file(folder.path("recorded.mallard/sites.parquet")).unwrap();
    folder
        .mallard(&["sites", "recorded"])
        .refuses(3, "sites.parquet is corrupt: the file is missing");
}

#[test]
fn import_reports_a_truncated_or_corrupt_event_log() {
    let folder = Folder::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/trace_format.golden");
    let mut golden = fs::read(golden).unwrap();
    fs::write(folder.path("cut.stream"), &golden[..300]).unwrap();
    let end = golden.len() - 24;
    golden[end] ^= 1;
    fs::write(folder.path("damaged.stream"), &golden).unwrap();
    for (name, says) in
        [("cut", "the event log is incomplete: its writer"), ("damaged", "damaged: the end names")]
    {
        let ran = folder.mallard(&["import", &format!("{name}.stream")]);
        assert_eq!(ran.status(), 0);
        assert!(ran.errors().contains(says), "{}", ran.errors());
    }
    folder
        .mallard(&["import", "cut.stream", "-o", "no/such"])
        .refuses(3, "there is no directory no");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn recording_python_prints_a_note_about_its_internal_allocator() {
    let folder = Folder::new();
    let says = |value: Option<&str>| {
        let mut command = folder.command(support::MALLARD);
        command.args([
            "record",
            "--force",
            "-o",
            "a",
            "--no-symbols",
            "--",
            "/usr/bin/python3",
            "-c",
            "1",
        ]);
        value.map(|value| command.env("PYTHONMALLOC", value));
        support::Ran(command.output().unwrap()).errors().contains("its own arenas")
    };
    assert!(says(None) && !says(Some("malloc")));
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn only_the_interpreter_of_a_script_is_recorded_unless_its_programs_are_followed() {
    let folder = Folder::new();
    fs::write(
        folder.path("script"),
        "#!/usr/bin/env bash\nexec perl -e 'my %h; $h{$_} = 1 for 1..9999'\n",
    )
    .unwrap();
    fs::set_permissions(folder.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let alone = folder.record(&[], &["./script"]);
    assert!(
        alone.ran.errors().contains("--follow fork,exec -- ./script"),
        "{}",
        alone.ran.errors()
    );
    let followed = folder.record(&["--follow", "exec"], &["./script"]);
    assert!(!followed.ran.errors().contains("it is a script"), "{}", followed.ran.errors());
    let blocks = |recording: &support::Recording| recording.trace.manifest().counts.blocks;
    assert!(blocks(&followed) > blocks(&alone) + 9999);
}
