/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Claims about the system call filters, made by calling: each rule with arguments that it allows, each with arguments that are one
 * bit off, and every other number once. A call is made in a child of its own with arguments that are nonsense (-1) where no rule
 * looks, so that one that is let through fails in the kernel. Needs no root.
 */
#undef NDEBUG
#include "jail/filter.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

#define NAMES_MAX 62  /* what we hold ourselves to */
#define NUMBERS   512 /* more than x86-64 has */
#define URETPROBE                                                                                                     \
        335 /* no filter sees it (Linux 6.14) nor UPROBE (6.18); from anywhere but their trampolines: SIGILL */
#define UPROBE       336
#define X32_BIT      0x40000000
#define OTHER_KVM_FD 0x4020ae46UL /* KVM_SET_USER_MEMORY_REGION */

typedef struct Call {
        long number;
        uint64_t a[6];
} Call;

typedef enum Fate { KILLED, FAILED_ENOSYS, LET_THROUGH } Fate;

static const char exec_path[] = "/nowhere";
static struct sock_fprog programs[3];
static unsigned n_calls;

static Call call_of(long number) {
        return (Call){
                number, {~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL}
        };
}

static _Noreturn void make_call(const struct sock_fprog *program, const Call *c) {
        struct rlimit no_core = {0, 0};
        Failure failure;
        long r;

        setrlimit(RLIMIT_CORE, &no_core);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_load(program, &failure) < 0)
                abort();
        r = syscall(c->number, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]);
        _exit(r < 0 && errno == ENOSYS ? 38 : 0);
}

static Fate fate_of(FilterProfile profile, const Call *c) {
        pid_t pid = fork();
        int status;

        assert(pid >= 0);
        if (pid == 0)
                make_call(&programs[profile], c);
        assert(waitpid(pid, &status, 0) == pid);
        assert(!(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
        n_calls++;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
                return KILLED;
        return WIFEXITED(status) && WEXITSTATUS(status) == 38 ? FAILED_ENOSYS : LET_THROUGH;
}

static void assert_fate(FilterProfile profile, const Call *c, Fate expected) {
        Fate fate = fate_of(profile, c);

        if (fate != expected)
                fprintf(stderr, "profile %d, call %ld(%#lx, %#lx, %#lx, %#lx): got %d, expected %d\n", profile,
                        c->number, c->a[0], c->a[1], c->a[2], c->a[3], fate, expected);
        assert(fate == expected);
}

static bool condition_holds(const struct scmp_arg_cmp *condition, const Call *c) {
        uint64_t value = c->a[condition->arg];

        if (condition->op == SCMP_CMP_MASKED_EQ)
                return (value & condition->datum_a) == condition->datum_b;
        assert(condition->op == SCMP_CMP_EQ);
        return value == condition->datum_a;
}

static bool rule_holds(const FilterRule *rule, FilterProfile profile, const Call *c) {
        if (rule->number != c->number || !(rule->profiles & (1U << profile)))
                return false;
        for (size_t i = 0; i < rule->n_arguments; i++)
                if (!condition_holds(&rule->arguments[i], c))
                        return false;
        return true;
}

/* What the table says, read without libseccomp. */
static Fate expected_fate(FilterProfile profile, const Call *c) {
        if (c->number == SYS_execve && profile != FILTER_OUTER)
                return c->a[0] == (uint64_t) (uintptr_t) exec_path ? LET_THROUGH : KILLED;
        for (size_t i = 0; i < filter_n_rules; i++)
                if (rule_holds(&filter_rules[i], profile, c))
                        return filter_rules[i].error == ENOSYS ? FAILED_ENOSYS : LET_THROUGH;
        return KILLED;
}

static Call call_that_fits(const FilterRule *rule) {
        Call c = call_of(rule->number);

        for (size_t i = 0; i < rule->n_arguments; i++) {
                const struct scmp_arg_cmp *condition = &rule->arguments[i];

                c.a[condition->arg] = condition->op == SCMP_CMP_MASKED_EQ ? condition->datum_b : condition->datum_a;
        }
        return c;
}

static void mutate(FilterProfile profile, const FilterRule *rule) {
        static const unsigned bits[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 28, 31, 33, 63};

        for (size_t i = 0; i < rule->n_arguments; i++)
                for (size_t b = 0; b < ELEMENTSOF(bits); b++) {
                        Call c = call_that_fits(rule);

                        c.a[rule->arguments[i].arg] ^= 1ULL << bits[b];
                        assert_fate(profile, &c, expected_fate(profile, &c));
                }
}

static void each_rule_lets_through_what_it_says_and_nothing_one_bit_off(FilterProfile profile) {
        for (size_t i = 0; i < filter_n_rules; i++) {
                const FilterRule *rule = &filter_rules[i];
                Call c = call_that_fits(rule);

                if (!(rule->profiles & (1U << profile)) || rule->number == SYS_futex)
                        continue; /* the kernel itself answers ENOSYS to an unknown futex operation */
                assert_fate(profile, &c, rule->error == ENOSYS ? FAILED_ENOSYS : LET_THROUGH);
                mutate(profile, rule);
        }
}

static bool has_rule(FilterProfile profile, long number) {
        for (size_t i = 0; i < filter_n_rules; i++)
                if (filter_rules[i].number == number && filter_rules[i].profiles & (1U << profile))
                        return true;
        return number == SYS_execve && profile != FILTER_OUTER;
}

static void every_other_call_kills(FilterProfile profile) {
        for (long number = 0; number < NUMBERS; number++) {
                Call c = call_of(number);

                if (!has_rule(profile, number) && number != URETPROBE && number != UPROBE)
                        assert_fate(profile, &c, KILLED);
        }
}

static void other_ways_into_the_kernel_kill(FilterProfile profile) {
        Call c = call_of(X32_BIT | SYS_read);

        assert_fate(profile, &c, KILLED);
        c = call_of(-1);
        assert_fate(profile, &c, KILLED);
}

static bool fails_always(long number) {
        for (size_t i = 0; i < filter_n_rules; i++)
                if (filter_rules[i].number == number)
                        return filter_rules[i].error != 0;
        return false;
}

static unsigned count_names(FilterProfile profile) {
        unsigned n = 0;

        for (long number = 0; number < NUMBERS; number++)
                n += has_rule(profile, number) && !fails_always(number);
        return n;
}

static void the_list_is_short(void) {
        printf("names: %u with TCG, %u with KVM, %u outside\n", count_names(FILTER_TCG), count_names(FILTER_KVM),
               count_names(FILTER_OUTER));
        assert(count_names(FILTER_TCG) <= NAMES_MAX && count_names(FILTER_KVM) <= NAMES_MAX);
        assert(count_names(FILTER_OUTER) <= 5);
}

#define DIES(profile, ...)  assert_fate(profile, &(Call){__VA_ARGS__}, KILLED)
#define LIVES(profile, ...) assert_fate(profile, &(Call){__VA_ARGS__}, LET_THROUGH)

/* Said by name, not read off the table: what the table must never come to allow. */
static void what_must_not_be_is_not(FilterProfile p) {
        static const long numbers[] = {
                SYS_socket,
                SYS_socketpair,
                SYS_connect,
                SYS_bind,
                SYS_listen,
                SYS_accept4,
                SYS_execveat,
                SYS_fork,
                SYS_vfork,
                SYS_ptrace,
                SYS_kill,
                SYS_tkill,
                SYS_mount,
                SYS_umount2,
                SYS_move_mount,
                SYS_open_tree,
                SYS_pivot_root,
                SYS_chroot,
                SYS_unshare,
                SYS_setns,
                SYS_keyctl,
                SYS_add_key,
                SYS_bpf,
                SYS_userfaultfd,
                SYS_perf_event_open,
                SYS_setuid,
                SYS_setresuid,
                SYS_capset,
                SYS_personality,
                SYS_process_vm_readv,
                SYS_pidfd_open,
                SYS_pidfd_getfd,
                SYS_init_module,
                SYS_mknodat,
                SYS_open_by_handle_at,
                SYS_linkat,
                SYS_symlinkat,
                SYS_renameat2,
                SYS_unlinkat,
                SYS_fchmodat,
                SYS_shmget,
                SYS_io_uring_enter,
                SYS_pkey_mprotect,
                SYS_modify_ldt,
                SYS_iopl,
                SYS_syslog,
                SYS_setrlimit,
                SYS_getuid,
                SYS_sched_setaffinity,
        };

        for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
                Call c = call_of(numbers[i]);

                assert_fate(p, &c, KILLED);
        }
        DIES(p, SYS_clone, {SIGCHLD});
        DIES(p, SYS_clone, {CLONE_NEWUSER | SIGCHLD});
        DIES(p, SYS_clone, {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWNS});
        DIES(p, SYS_prctl, {PR_SET_DUMPABLE, 1});
        DIES(p, SYS_prctl, {PR_SET_PDEATHSIG, 0});
        DIES(p, SYS_prctl, {PR_SET_SECCOMP, SECCOMP_MODE_FILTER});
        DIES(p, SYS_ioctl, {0, TIOCSTI});
        DIES(p, SYS_ioctl, {0, FIONREAD});
        DIES(p, SYS_fcntl, {0, F_SETOWN, 1});
        DIES(p, SYS_fcntl, {0, F_NOTIFY});
        DIES(p, SYS_prlimit64, {1, RLIMIT_CORE});
        DIES(p, SYS_tgkill, {2, 2, SIGKILL});
        DIES(p, SYS_execve, {(uint64_t) (uintptr_t) exec_path + 1});
}

static void nothing_written_runs_under_kvm(void) {
        const uint64_t size = 4096, no_fd = ~0ULL, private = MAP_PRIVATE;

        DIES(FILTER_KVM, SYS_mmap, {0, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, no_fd, 0});
        DIES(FILTER_KVM, SYS_mmap, {0, size, PROT_EXEC, MAP_SHARED, 0, 0});
        DIES(FILTER_KVM, SYS_mmap, {0, size, PROT_EXEC, MAP_SHARED_VALIDATE, 0, 0});
        DIES(FILTER_KVM, SYS_mmap, {0, size, PROT_READ | PROT_WRITE | PROT_EXEC, private, 0, 0});
        DIES(FILTER_KVM, SYS_mprotect, {0, size, PROT_READ | PROT_EXEC});
        LIVES(FILTER_KVM, SYS_mmap, {0, size, PROT_READ | PROT_EXEC, private, no_fd, 0});
        LIVES(FILTER_KVM, SYS_mmap, {0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, no_fd, 0});
        LIVES(FILTER_KVM, SYS_ioctl, {no_fd, OTHER_KVM_FD});
        DIES(FILTER_TCG, SYS_ioctl, {no_fd, OTHER_KVM_FD});
        LIVES(FILTER_TCG, SYS_mmap,
              {0, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, no_fd, 0});
}

int main(void) {
        Failure failure = {0};

        assert(filter_compile(FILTER_TCG, exec_path, &programs[FILTER_TCG], &failure) == 0);
        assert(filter_compile(FILTER_KVM, exec_path, &programs[FILTER_KVM], &failure) == 0);
        assert(filter_compile(FILTER_OUTER, NULL, &programs[FILTER_OUTER], &failure) == 0);
        the_list_is_short();
        for (FilterProfile p = FILTER_TCG; p <= FILTER_OUTER; p++) {
                each_rule_lets_through_what_it_says_and_nothing_one_bit_off(p);
                every_other_call_kills(p);
                other_ways_into_the_kernel_kill(p);
                what_must_not_be_is_not(p);
        }
        nothing_written_runs_under_kvm();
        printf("calls made: %u\n", n_calls);
        for (size_t i = 0; i < ELEMENTSOF(programs); i++)
                filter_done(&programs[i]);
        return 0;
}
