/* Loaded before a program, hides instruction sets from it: HIDE="amx", "amx vnni" or "amx vnni avx512".
   The kernel lets CPUID fault, and the answer given in its place lacks them. A library that asks CPUID which kernels it
   may use then takes those for an older processor, at this one's full speed. Linux on x86-64 with cpuid_fault only. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { ARCH_CPUID = 0x1012 };

static unsigned hidden_b, hidden_c, hidden_d; /* of leaf 7 */
static unsigned hidden_a1;                    /* of its subleaf 1 */

static void answer(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *at = (const uint8_t *)registers[REG_RIP];
    unsigned leaf = registers[REG_RAX], subleaf = registers[REG_RCX], a, b, c, d;
    (void)info;
    if (at[0] != 0x0f || at[1] != 0xa2) { /* another fault than CPUID's: the next one ends the program */
        signal(number, SIG_DFL);
        return;
    }
    syscall(SYS_arch_prctl, ARCH_CPUID, 1);
    __cpuid_count(leaf, subleaf, a, b, c, d);
    syscall(SYS_arch_prctl, ARCH_CPUID, 0);
    if (leaf == 7 && subleaf == 0) {
        b &= ~hidden_b;
        c &= ~hidden_c;
        d &= ~hidden_d;
    }
    if (leaf == 7 && subleaf == 1)
        a &= ~hidden_a1;
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
    const char *hide = getenv("HIDE");
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (!hide)
        return;
    if (strstr(hide, "amx"))
        hidden_d |= 1u << 22 | 1u << 24 | 1u << 25, hidden_a1 |= 1u << 21;
    if (strstr(hide, "vnni"))
        hidden_c |= 1u << 11, hidden_a1 |= 1u << 4;
    if (strstr(hide, "avx512")) /* F, DQ, IFMA, CD, BW, VL; VBMI, VBMI2, BITALG, VPOPCNTDQ; FP16; BF16 */
        hidden_b |= 1u << 16 | 1u << 17 | 1u << 21 | 1u << 28 | 1u << 30 | 1u << 31,
            hidden_c |= 1u << 1 | 1u << 6 | 1u << 12 | 1u << 14, hidden_d |= 1u << 23, hidden_a1 |= 1u << 5;
    sigaction(SIGSEGV, &action, NULL);
    if (syscall(SYS_arch_prctl, ARCH_CPUID, 0)) {
        const char why[] = "this processor or its hypervisor does not let CPUID fault\n";
        (void)!write(2, why, sizeof why - 1);
        _exit(77);
    }
}
