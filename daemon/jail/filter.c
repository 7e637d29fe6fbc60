/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * From the table in filter-rules.c to a BPF program. libseccomp translates; the program is loaded with prctl(2) by ourselves, so that
 * the service's own filter need not allow seccomp(2) for us.
 */
#include "jail/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

#define API_LEVEL 3 /* SCMP_ACT_KILL_PROCESS (Linux 4.14); said, not probed: probing needs seccomp(2) */

DEFINE_CLEANUP(scmp_filter_ctx, seccomp_release);

static int add_rules(scmp_filter_ctx ctx, FilterProfile profile, Failure *reterr) {
        for (size_t i = 0; i < filter_n_rules; i++) {
                const FilterRule *rule = &filter_rules[i];
                uint32_t action = rule->error != 0 ? SCMP_ACT_ERRNO((uint16_t) rule->error) : SCMP_ACT_ALLOW;
                int r;

                if (!(rule->profiles & (1U << profile)))
                        continue;
                r = seccomp_rule_add_exact_array(ctx, action, rule->number, (unsigned) rule->n_arguments,
                                                 rule->arguments);
                if (r < 0)
                        return failure_set(reterr, r, "system call filter, rule %zu (call %d)", i, rule->number);
        }
        return 0;
}

static int set_attributes(scmp_filter_ctx ctx) {
        int r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

        if (r < 0)
                return r;
        return seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree over the numbers */
}

static int export_program(scmp_filter_ctx ctx, struct sock_fprog *ret) {
        _cleanup_(fd_closep) int fd = memfd_create("filter", MFD_CLOEXEC);
        _cleanup_(freep) struct sock_filter *code = NULL;
        struct stat st;
        int r;

        if (fd < 0)
                return -errno;
        r = seccomp_export_bpf(ctx, fd);
        if (r < 0)
                return r;
        if (fstat(fd, &st) < 0)
                return -errno;
        code = malloc((size_t) st.st_size);
        if (!code)
                return -ENOMEM;
        if (pread(fd, code, (size_t) st.st_size, 0) != st.st_size)
                return -EIO;
        *ret = (struct sock_fprog){
                .len = (unsigned short) ((size_t) st.st_size / sizeof(struct sock_filter)),
                .filter = TAKE_PTR(code),
        };
        return 0;
}

int filter_compile(FilterProfile profile, const char *exec_path, struct sock_fprog *ret, Failure *reterr) {
        _cleanup_(seccomp_releasep) scmp_filter_ctx ctx = NULL;
        int r;

        r = seccomp_api_set(API_LEVEL);
        if (r < 0)
                return failure_set(reterr, r, "libseccomp's API level %d", API_LEVEL);
        ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
        if (!ctx)
                return failure_set(reterr, -ENOMEM, "system call filter");
        r = set_attributes(ctx);
        if (r < 0)
                return failure_set(reterr, r, "attributes of the system call filter");
        r = add_rules(ctx, profile, reterr);
        if (r < 0)
                return r;
        if (exec_path) {
                struct scmp_arg_cmp path = SCMP_A0_64(SCMP_CMP_EQ, (uint64_t) (uintptr_t) exec_path);

                r = seccomp_rule_add_exact_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(execve), 1, &path);
                if (r < 0)
                        return failure_set(reterr, r, "system call filter, rule of execve");
        }
        r = export_program(ctx, ret);
        if (r < 0)
                return failure_set(reterr, r, "compiling the system call filter");
        return 0;
}

void filter_done(struct sock_fprog *program) {
        free(program->filter);
        *program = (struct sock_fprog){0};
}

int filter_load(const struct sock_fprog *program, Failure *reterr) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) < 0)
                return failure_set(reterr, -errno, "loading the system call filter");
        return 0;
}
