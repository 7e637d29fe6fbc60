/* SPDX-License-Identifier: LGPL-2.1-or-later */

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/config.h"
#include "common/fd.h"

static char directory[] = "/tmp/test-config-XXXXXX";
static char config_path[64];

static void put(const char *name, const char *text) {
        _cleanup_(fd_closep) int fd = -EBADF;
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/%s", directory, name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        assert(fd >= 0);
        assert(fd_write_all(fd, text, strlen(text)) == 0);
}

static void drop(const char *name) {
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/%s", directory, name);
        assert(unlink(path) == 0);
}

static void refused(const char *text, const char *expected) {
        _cleanup_(freep) char *error = NULL;
        Config c;

        put("x.conf", text);
        assert(config_load(config_path, &c, &error) < 0);
        if (!strstr(error, expected))
                fprintf(stderr, "expected: %s\ngot:      %s\n", expected, error);
        assert(strstr(error, expected));
        assert(strncmp(error, config_path, strlen(config_path)) == 0);
}

static void no_file_means_the_defaults(void) {
        _cleanup_(config_done) Config c = {0};
        char *error = NULL;

        assert(config_load("/nonexistent/x.conf", &c, &error) == 0);
        assert(c.accelerator == ACCELERATOR_AUTO && !c.require_hardware_virtualization);
        assert(c.runs_max == 0 && c.queue_max == 256 && c.idle_usec == 30 * USEC_PER_SEC);
        assert(strcmp(c.image, "default") == 0);
        assert(strcmp(c.qemu_path, "/usr/bin/qemu-system-x86_64") == 0);
        assert(c.jail_path[0] == '/' && c.workflows_path[0] == '/' && c.images_path[0] == '/');
}

static void every_key_is_read(void) {
        _cleanup_(config_done) Config c = {0};
        char *error = NULL;

        put("x.conf", "# comment\n[Manager]\nAccelerator=tcg\nRequireHardwareVirtualization=yes\n  RunsMax = 4096\n"
                      "QueueMax=0\nIdleSec=86400\nImage=python\nJailPath=/j\nQemuPath=/q\nWorkflowsPath=/w\n"
                      "ImagesPath=/a:/b\nTemplates=no\nTemplatesMax=9\nTemplatesPath=/"
                      "t\nStandby=3\nStandbyIdleSec=7\nMemoryPressurePath=/p\n");
        assert(config_load(config_path, &c, &error) == 0);
        assert(c.accelerator == ACCELERATOR_TCG && c.require_hardware_virtualization);
        assert(c.runs_max == 4096 && c.queue_max == 0 && c.idle_usec == 86400 * USEC_PER_SEC);
        assert(strcmp(c.image, "python") == 0 && strcmp(c.jail_path, "/j") == 0 && strcmp(c.qemu_path, "/q") == 0);
        assert(strcmp(c.workflows_path, "/w") == 0 && strcmp(c.images_path, "/a:/b") == 0);
        assert(!c.templates && c.templates_max == 9 && strcmp(c.templates_path, "/t") == 0);
        assert(c.standby == 3 && c.standby_idle_usec == 7000000 && strcmp(c.memory_pressure_path, "/p") == 0);
}

static void errors_name_file_and_line(void) {
        refused("[Manager]\nRunsMax=4097\n",
                "x.conf:2: RunsMax=4097: expected a whole number, 0 for automatic, from 0 to 4096");
        refused("[Manager]\n\nRunsMax=-1\n", "x.conf:3: RunsMax=-1: expected");
        refused("[Manager]\nRunsMax=4x\n", "x.conf:2: RunsMax=4x: expected");
        refused("[Manager]\nRunsMax=\n", "x.conf:2: RunsMax=: expected");
        refused("[Manager]\nIdleSec=86401\n", "x.conf:2: IdleSec=86401: expected");
        refused("[Manager]\nIdleSec=99999999999999999999\n", "x.conf:2: IdleSec=");
        refused("[Manager]\nAccelerator=hvf\n", "x.conf:2: Accelerator=hvf: expected auto, kvm or tcg");
        refused("[Manager]\nRequireHardwareVirtualization=maybe\n",
                "x.conf:2: RequireHardwareVirtualization=maybe: expected yes or no");
        refused("[Manager]\nJailPath=jail\n", "x.conf:2: JailPath=jail: expected an absolute path");
        refused("[Manager]\nwhat is this\n", "x.conf:2: expected [Section] or Key=value");
        refused("[Manager\n", "x.conf:1: expected [Section] or Key=value");
}

static void long_lines_and_files_are_refused(void) {
        static char text[70000];
        _cleanup_(config_done) Config c = {0};
        char *error = NULL;

        memset(text, 'x', sizeof(text) - 1);
        refused(text, "larger than 64 KiB");
        text[190] = 0;
        memcpy(text, "#", 1);
        put("x.conf", text);
        assert(config_load(config_path, &c, &error) == 0);
        text[190] = 'x';
        text[191] = 0;
        refused(text, "x.conf:1: a line of more than 190 characters");
}

static void unknown_keys_and_sections_are_only_warned_about(void) {
        _cleanup_(config_done) Config c = {0};
        char *error = NULL;

        put("x.conf", "[Manager]\nColour=red\nImage=a\n[Other]\nImage=b\n");
        assert(config_load(config_path, &c, &error) == 0);
        assert(strcmp(c.image, "a") == 0);
}

static void drop_ins_come_after_by_name(void) {
        _cleanup_(config_done) Config c = {0};
        char *error = NULL;

        put("x.conf", "[Manager]\nImage=a\nRunsMax=1\n");
        put("x.conf.d/20.conf", "[Manager]\nImage=c\n");
        put("x.conf.d/10.conf", "[Manager]\nImage=b\nQueueMax=9\n");
        put("x.conf.d/30.txt", "[Manager]\nImage=d\n");
        put("x.conf.d/.40.conf", "[Manager]\nImage=e\n");
        assert(config_load(config_path, &c, &error) == 0);
        assert(strcmp(c.image, "c") == 0 && c.runs_max == 1 && c.queue_max == 9);

        put("x.conf.d/20.conf", "[Manager]\nRunsMax=x\n");
        {
                _cleanup_(freep) char *told = NULL;
                Config other;

                assert(config_load(config_path, &other, &told) == -EBADMSG);
                assert(strstr(told, "x.conf.d/20.conf:2: "));
        }
        drop("x.conf.d/10.conf");
        drop("x.conf.d/20.conf");
        drop("x.conf.d/30.txt");
        drop("x.conf.d/.40.conf");
}

int main(void) {
        char drop_ins[64];

        assert(mkdtemp(directory));
        (void) snprintf(config_path, sizeof(config_path), "%s/x.conf", directory);
        (void) snprintf(drop_ins, sizeof(drop_ins), "%s/x.conf.d", directory);
        assert(mkdir(drop_ins, 0755) == 0);

        no_file_means_the_defaults();
        every_key_is_read();
        errors_name_file_and_line();
        long_lines_and_files_are_refused();
        unknown_keys_and_sections_are_only_warned_about();
        drop_ins_come_after_by_name();

        drop("x.conf");
        assert(rmdir(drop_ins) == 0);
        assert(rmdir(directory) == 0);
        return 0;
}
