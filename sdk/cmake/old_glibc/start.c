// SPDX-License-Identifier: Apache-2.0
// The start of a program for glibc before 2.34, which expects the program to run its constructors and destructors itself. Newer versions do so
// for programs of older ones. It takes the place of glibc's Scrt1.o.
typedef void Function(int, char**, char**);

extern Function* const __preinit_array_start[] __attribute__((visibility("hidden")));
extern Function* const __preinit_array_end[] __attribute__((visibility("hidden")));
extern Function* const __init_array_start[] __attribute__((visibility("hidden")));
extern Function* const __init_array_end[] __attribute__((visibility("hidden")));
void _init(void);

__attribute__((visibility("hidden"))) void collet_start_init(int count, char** arguments, char** environment) {
  for (Function* const* one = __preinit_array_start; one != __preinit_array_end; ++one)
    (*one)(count, arguments, environment);
  _init();
  for (Function* const* one = __init_array_start; one != __init_array_end; ++one) (*one)(count, arguments, environment);
}

// The dynamic linker runs the destructors of position-independent programs.
__attribute__((visibility("hidden"))) void collet_start_fini(void) {}

// __libc_start_main(main, count, arguments, init, fini, the dynamic linker's fini, end of the stack), as the psABI lays them at a program's
// start: the dynamic linker's fini in a register, the count and the arguments on the stack.
#if defined(__x86_64__)
__asm__(
    ".text\n.globl _start\n.type _start,@function\n"
    "_start:\n"
    "  .cfi_startproc\n  .cfi_undefined rip\n"
    "  xorl %ebp, %ebp\n"
    "  movq %rdx, %r9\n"
    "  popq %rsi\n"
    "  movq %rsp, %rdx\n"
    "  andq $-16, %rsp\n"
    "  pushq %rax\n"
    "  pushq %rsp\n"
    "  leaq collet_start_fini(%rip), %r8\n"
    "  leaq collet_start_init(%rip), %rcx\n"
    "  movq main@GOTPCREL(%rip), %rdi\n"
    "  call *__libc_start_main@GOTPCREL(%rip)\n"
    "  hlt\n"
    "  .cfi_endproc\n.size _start, .-_start\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n.globl _start\n.type _start,%function\n"
    "_start:\n"
    "  .cfi_startproc\n  .cfi_undefined x30\n"
    "  mov x29, #0\n"
    "  mov x30, #0\n"
    "  mov x5, x0\n"
    "  ldr x1, [sp]\n"
    "  add x2, sp, #8\n"
    "  mov x6, sp\n"
    "  adrp x0, :got:main\n"
    "  ldr x0, [x0, #:got_lo12:main]\n"
    "  adrp x3, collet_start_init\n"
    "  add x3, x3, #:lo12:collet_start_init\n"
    "  adrp x4, collet_start_fini\n"
    "  add x4, x4, #:lo12:collet_start_fini\n"
    "  bl __libc_start_main\n"
    "  brk #1\n"
    "  .cfi_endproc\n.size _start, .-_start\n");
#else
#error "no start of programs for this machine"
#endif
