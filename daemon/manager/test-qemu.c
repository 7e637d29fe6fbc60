/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Claims about probing QEMU: on scripts that pretend (nothing is asked of them but what they print) and on the installed one.
 */
#undef NDEBUG
#include "manager/qemu.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/strv.h"
#include "manager/kvm.h"

#define SKIP 77

static char directory[] = "/tmp/test-qemu-XXXXXX";

static void write_script(const char *path, const char *body) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

        assert(fd >= 0 && dprintf(fd, "#!/bin/sh\n%s\n", body) > 0);
        fd_close(fd);
}

static void assert_refused(const char *binary, int error, const char *word) {
        _cleanup_(freep) char *text = NULL;
        Qemu *q = NULL;
        int r = qemu_probe(binary, &q, &text);

        if (r != error || !text || !strstr(text, word))
                fprintf(stderr, "%s: got %d (%s), expected %d (%s)\n", binary, r, text ? text : "", error, word);
        assert(r == error && text && strstr(text, word) && !q);
}

static void what_is_no_qemu_is_refused_with_a_cure(void) {
        char path[64];

        snprintf(path, sizeof(path), "%s/qemu", directory);
        assert_refused(path, -ENOENT, "install qemu-system-x86");
        write_script(path, "echo 'QEMU emulator version 7.1.0'");
        assert_refused(path, -EOPNOTSUPP, "install QEMU 7.2 or later");
        write_script(path, "echo 'QEMU emulator version 6.9.99 (x)'");
        assert_refused(path, -EOPNOTSUPP, "6.9");
        write_script(path, "echo hello");
        assert_refused(path, -EOPNOTSUPP, "does not answer");
        write_script(path, "exit 3");
        assert_refused(path, -EPROTO, "--version");
        write_script(path, "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done");
        assert_refused(path, -EFBIG, "--version");
        write_script(path, "echo 'QEMU emulator version 10.0.2'");
        assert_refused(path, -ENOEXEC, "dynamically linked");
        assert(unlink(path) == 0);
}

static size_t count(char *const *v, const char *part) {
        size_t n = 0;

        for (size_t i = 0; v[i]; i++)
                n += strstr(v[i], part) != NULL;
        return n;
}

static void assert_absolute_and_there(char *const *v) {
        struct stat st;

        for (size_t i = 0; v[i]; i++)
                assert(v[i][0] == '/' && stat(v[i], &st) == 0 && S_ISREG(st.st_mode));
}

static void the_installed_one_is_known(const Qemu *q) {
        assert(strcmp(qemu_binary(q), QEMU_BINARY) == 0);
        assert(qemu_version(q)[0] >= '1' && qemu_version(q)[0] <= '9');
        assert(strlen(qemu_build(q)) > 8 && strspn(qemu_build(q), "0123456789abcdef-") == strlen(qemu_build(q)));
        assert(qemu_firmware(q)[0] == '/' && access(qemu_firmware(q), R_OK) == 0);
        assert(qemu_is_current(q));
}

static void kvm_gets_no_emulation(const Qemu *q) {
        _cleanup_(strv_freep) char **kvm = NULL, **tcg = NULL;

        assert(qemu_binds(q, true, &kvm) == 0 && qemu_binds(q, false, &tcg) == 0);
        assert_absolute_and_there(kvm);
        assert_absolute_and_there(tcg);
        assert(count(kvm, QEMU_BINARY) == 1 && count(kvm, "ld-linux") == 1 && count(kvm, "/libc.so.6") == 1);
        assert(count(kvm, "qboot.rom") == 1 && count(kvm, "accel-tcg") == 0);
        assert(strv_length(tcg) - strv_length(kvm) == count(tcg, "accel-tcg"));
}

static void a_changed_file_is_noticed(void) {
        _cleanup_(qemu_freep) Qemu *q = NULL;
        _cleanup_(freep) char *text = NULL;
        char path[64], command[256];

        snprintf(path, sizeof(path), "%s/copy", directory);
        snprintf(command, sizeof(command), "cp -L " QEMU_BINARY " %s", path);
        assert(system(command) == 0); /* NOLINT: a fixed command */
        if (qemu_probe(path, &q, &text) == 0) {
                assert(qemu_is_current(q));
                assert(truncate(path, 1000) == 0);
                assert(!qemu_is_current(q));
        } else
                assert(strstr(text, "qboot.rom")); /* built to look beside itself */
        assert(unlink(path) == 0);
}

static void kvm_answers_or_says_why(void) {
        _cleanup_(freep) char *reason = NULL;
        int r = kvm_usable(&reason);

        assert(r <= 0 && (r == 0) == (reason == NULL));
        if (reason)
                assert(strstr(reason, "/dev/kvm"));
}

int main(void) {
        _cleanup_(qemu_freep) Qemu *q = NULL;
        _cleanup_(freep) char *text = NULL;

        assert(mkdtemp(directory));
        what_is_no_qemu_is_refused_with_a_cure();
        kvm_answers_or_says_why();
        if (access(QEMU_BINARY, X_OK) < 0) {
                assert(rmdir(directory) == 0);
                fprintf(stderr, "skipped: " QEMU_BINARY " is not installed\n");
                return SKIP;
        }
        assert(qemu_probe(QEMU_BINARY, &q, &text) == 0);
        the_installed_one_is_known(q);
        kvm_gets_no_emulation(q);
        a_changed_file_is_noticed();
        assert(rmdir(directory) == 0);
        return 0;
}
