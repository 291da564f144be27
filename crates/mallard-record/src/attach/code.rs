//! The injected code, which loads the recorder in the process and calls `mallard_record_attach`.
//!
//! The code has one entry point for each function that it replaces, in the order of
//! `modules::TRIGGERS`, and one for a thread that waits in a system call. The first thread that
//! enters the code loads the recorder, on a separate stack. All other threads continue immediately.
//! The data of the code begin one page after the beginning of the code (see `request`).
#![allow(unsafe_code)] // has assembler, and reads it as bytes

use crate::attach::request::{self, PAGE};
use std::arch::global_asm;

/// The offset at which a stopped thread enters the code to execute the operations of a table, whose
/// address is in rbx. The code uses no stack, and ends with a trap.
pub const OPERATIONS: u64 = 0;
/// Returns the offset of the entry point of a function.
pub fn entry(function: usize) -> u64 {
    32 * (function as u64 + 1)
}
/// The offset at which a thread that waited in a system call enters the code.
pub const WAIT: u64 = 32 * 5;

global_asm!(
    r#"
    .pushsection .rodata.mallard_attach, "a", @progbits
    .balign 32
    .globl mallard_attach_begin
    .hidden mallard_attach_begin
mallard_attach_begin:
.Lmallard_begin:
    jmp .Lmallard_operations

    // The functions: r11 points to the address of the real one.
    .irp index, 0, 1, 2, 3
    .balign 32
    leaq .Lmallard_begin+{page}+{real}+8*\index(%rip), %r11
    jmp .Lmallard_call
    .endr

    // A thread that waits in a system call. All registers but rax, rcx and r11 stay as they are.
    .balign 32
    movl $1, %ecx
    xorl %eax, %eax
    lock cmpxchgq %rcx, .Lmallard_begin+{page}+{state}(%rip)
    jne 2f
    movq %rsp, .Lmallard_begin+{page}+{saved}(%rip)
    movq .Lmallard_begin+{page}+{stack}(%rip), %rsp
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %r8
    pushq %r9
    pushq %r10
    movl $-1, %eax
    movl $-1, %edx
    movq .Lmallard_begin+{page}+{vectors}(%rip), %rcx
    xsave64 (%rcx)
    call .Lmallard_load
    movl $-1, %eax
    movl $-1, %edx
    movq .Lmallard_begin+{page}+{vectors}(%rip), %rcx
    xrstor64 (%rcx)
    popq %r10
    popq %r9
    popq %r8
    popq %rdx
    popq %rsi
    popq %rdi
    movq .Lmallard_begin+{page}+{saved}(%rip), %rsp
    movq $2, .Lmallard_begin+{page}+{state}(%rip)
2:  movq .Lmallard_begin+{page}+{again_rax}(%rip), %rax
    jmpq *.Lmallard_begin+{page}+{again_rip}(%rip)

    // An operation has 8 words: the number of a system call or another number, rdi, rsi, rdx, r10, r8, r9, and
    // the result.
.Lmallard_operations:
    movq (%rbx), %rax
    movq 8(%rbx), %rdi
    movq 16(%rbx), %rsi
    movq 24(%rbx), %rdx
    movq 32(%rbx), %r10
    movq 40(%rbx), %r8
    movq 48(%rbx), %r9
    cmpq $-1, %rax
    je 8f
    cmpq $-2, %rax
    je 7f
    syscall
    movq %rax, 56(%rbx)
    addq $64, %rbx
    jmp .Lmallard_operations
7:  movq %rdx, %rax
    lock cmpxchgq %rsi, (%rdi)
    addq $64, %rbx
    jmp .Lmallard_operations
8:  int3

.Lmallard_call:
    movl $1, %r10d
    xorl %eax, %eax
    lock cmpxchgq %r10, .Lmallard_begin+{page}+{state}(%rip)
    jne 1f
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r11
    pushq %rbx
    movq %rsp, %rbx
    movq .Lmallard_begin+{page}+{stack}(%rip), %rsp
    call .Lmallard_load
    movq %rbx, %rsp
    popq %rbx
    popq %r11
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    movq $2, .Lmallard_begin+{page}+{state}(%rip)
1:  jmpq *(%r11)

    // Loads the library, unless this is the child of a fork. errno stays as it is.
.Lmallard_load:
    pushq %r12
    pushq %r13
    pushq %r14
    movl $39, %eax // getpid
    syscall
    cmpq .Lmallard_begin+{page}+{pid}(%rip), %rax
    jne 6f
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    movq %rax, %r14
    call *.Lmallard_begin+{page}+{errno}(%rip)
    movq %rax, %r12
    movl (%rax), %r13d
    movq .Lmallard_begin+{page}+{path}(%rip), %rdi
    movq .Lmallard_begin+{page}+{flags}(%rip), %rsi
    call *.Lmallard_begin+{page}+{dlopen}(%rip)
    testq %rax, %rax
    je 3f
    movq %rax, %rdi
    movq .Lmallard_begin+{page}+{name}(%rip), %rsi
    call *.Lmallard_begin+{page}+{dlsym}(%rip)
    testq %rax, %rax
    je 3f
    movq .Lmallard_begin+{page}+{request}(%rip), %rdi
    call *%rax
    cltq
    movq %rax, .Lmallard_begin+{page}+{result}(%rip)
    jmp 5f
3:  movq $-1, .Lmallard_begin+{page}+{result}(%rip)
    movq .Lmallard_begin+{page}+{dlerror}(%rip), %rax
    testq %rax, %rax
    je 5f
    call *%rax
    movq %rax, .Lmallard_begin+{page}+{error}(%rip)
5:  movl %r13d, (%r12)
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    subq %r14, %rax
    movq %rax, .Lmallard_begin+{page}+{ticks}(%rip)
6:  popq %r14
    popq %r13
    popq %r12
    ret
    .globl mallard_attach_end
    .hidden mallard_attach_end
mallard_attach_end:
    .popsection
    "#,
    page = const PAGE,
    state = const request::STATE,
    pid = const request::PID,
    real = const request::REAL,
    dlopen = const request::DLOPEN,
    dlsym = const request::DLSYM,
    dlerror = const request::DLERROR,
    errno = const request::ERRNO,
    path = const request::PATH,
    flags = const request::FLAGS,
    name = const request::NAME,
    request = const request::REQUEST,
    stack = const request::STACK,
    vectors = const request::VECTORS,
    saved = const request::SAVED,
    again_rip = const request::AGAIN_RIP,
    again_rax = const request::AGAIN_RAX,
    result = const request::RESULT,
    error = const request::ERROR,
    ticks = const request::TICKS,
    options(att_syntax)
);

/// Returns the bytes of the code, which can run at any address.
pub fn bytes() -> &'static [u8] {
    unsafe extern "C" {
        static mallard_attach_begin: u8;
        static mallard_attach_end: u8;
    }
    let (begin, end) = (&raw const mallard_attach_begin, &raw const mallard_attach_end);
    // SAFETY: both are in one section of this program, which is never written.
    unsafe { std::slice::from_raw_parts(begin, end.addr() - begin.addr()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_injected_code_fits_its_page_and_has_its_entry_points_at_the_expected_offsets() {
        let code = bytes();
        assert!(code.len() < PAGE, "{}", code.len());
        assert!([0xe9, 0xeb].contains(&code[OPERATIONS as usize]), "jmp");
        for function in 0..4 {
            let at = entry(function) as usize;
            assert_eq!(code[at..at + 3], [0x4c, 0x8d, 0x1d], "lea to r11");
        }
        assert_eq!(code[WAIT as usize], 0xb9, "mov to ecx");
    }
}
